// Package provider makes the HTTP calls of the adapters to model providers, streaming or not, with
// their time-outs, and classifies failures by the codes of package model, in whatever form the
// provider reports them.
//
// It promises that an answer is complete: a stream that ends before its adapter
// reports the end is an error that can be retried, even if its connection closed
// in order. It does not retry or log, and its errors contain
// no key and no URL.
package provider
