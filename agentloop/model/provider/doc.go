// Package provider is what the adapters to providers share: one call over HTTP,
// streaming or not, with its time-outs and with its failures classified by the
// codes of package model, whatever form the provider gives them.
//
// It promises that an answer is complete: a stream that ends before its adapter
// says so is an error that can be retried, however orderly its connection
// closed. It does not retry, does not log, and what it tells of a failure holds
// no key and no URL.
package provider
