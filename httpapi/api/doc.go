// Package api is what clients and the server say to each other: every answer, event,
// error code, header and limit, once.
//
// It has no part of either. Of requests, it has what both sides name: the bodies are
// written by package client and read, strictly, by the server.
package api
