// Package web lets requests in: who calls, what the caller may do, and how much of this node a caller
// may hold. It reads bodies and queries strictly, and writes answers and events at the
// client's pace.
//
// Everything that a route is given of a request is a [Request].
package web
