// Package wire encodes and decodes what a log on JetStream stores: a record as a message,
// with its envelope in headers; many records as a segment, in compressed columns; the
// address of a blob. It talks to no server. Bytes of every earlier version stay readable.
// A damaged segment or address is an error that wraps [ErrDamaged].
package wire
