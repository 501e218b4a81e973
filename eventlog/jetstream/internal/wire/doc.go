// Package wire encodes and decodes what a log on JetStream stores: a record as a message, with
// its envelope in headers; many records as a segment, in compressed columns; the address of a
// large payload. It talks to no server. Older versions' bytes stay readable.
package wire
