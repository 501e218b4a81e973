// Package chat serves AI SDK clients: it does what their messages ask for, and streams the message
// that comes of it in their own format.
//
// Programs use its [Options]; the rest is for package httpapi.
package chat
