package durable

import (
	"fmt"
	"strconv"
)

// Offset is a place in a stream, between two bytes or messages. Position says where, and never
// changes. Sequence is that of the record that ends there, or before: reading continues after
// it. The zero Offset is the beginning.
type Offset struct {
	Position int64
	Sequence uint64
}

// offsetDigits is the length of each of an offset's two numbers. Offsets compare as text as
// their positions do.
const offsetDigits = 16

// String is the offset as clients get it.
func (o Offset) String() string {
	return fmt.Sprintf("%0*d_%0*d", offsetDigits, o.Position, offsetDigits, o.Sequence)
}

// ParseOffset is the inverse of String. The error is ErrOffset.
func ParseOffset(s string) (o Offset, err error) {
	if len(s) != 2*offsetDigits+1 || s[offsetDigits] != '_' {
		return o, ErrOffset
	}
	position, err := strconv.ParseUint(s[:offsetDigits], 10, 63)
	if err != nil {
		return o, ErrOffset
	}
	if o.Sequence, err = strconv.ParseUint(s[offsetDigits+1:], 10, 64); err != nil {
		return o, ErrOffset
	}
	o.Position = int64(position)
	return o, nil
}
