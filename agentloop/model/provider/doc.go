// Package provider is what the adapters to providers share: one call over HTTP,
// streaming or not, with its time-outs and with its failures classified by the
// codes of package model, in any form that the provider gives them.
//
// It promises that an answer is complete: a stream that ends before its adapter
// reports the end is an error that can be retried, even if its connection closed
// in order. It does not retry or log, and its errors contain
// no key and no URL.
package provider
