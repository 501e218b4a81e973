// Package api has the answers, events, error codes, headers and limits of the HTTP
// protocol, each once. The server and package client share it, and it imports neither.
//
// Bodies of requests have no types here: package client writes them, and the server reads
// their members one by one, so that it can say which one is wrong.
package api
