// Package pack writes Go values as bytes that are read many times faster than
// JSON. What is read has its strings and byte slices in common with the bytes.
//
// It is for caches: only a program with the same types reads what was written,
// see [Schema]. A value is written the same each time, and what only grows at the
// end of a long list is written so that its beginning stays what it was: the
// bytes can be cut where [Encode] says, and most pieces of successive states are
// the same.
package pack

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ErrDamaged says that bytes are not what [Encode] has written of a value of
// that type.
var ErrDamaged = errors.New("pack: damaged")

// format is the version of the encoding, as [Schema] returns it.
const format = 1

// Schema names how values of type T are written, in 16 hexadecimal digits. It
// panics if T has something that can't be: interfaces, unexported fields, structs
// of no fields, functions, channels, arrays, complex numbers, keys that are no
// strings, or a type within itself.
func Schema[T any]() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d ", format)
	describe(&s, reflect.TypeFor[T](), nil)
	sum := sha256.Sum256([]byte(s.String()))
	return hex.EncodeToString(sum[:8])
}

// opaque is a struct of one field that reads and writes itself.
type opaque interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

var opaqueType = reflect.TypeFor[opaque]()

// isOpaque reports whether values of a struct type are written as the bytes that
// they have for themselves.
func isOpaque(t reflect.Type) bool {
	return t.NumField() == 1 && reflect.PointerTo(t).Implements(opaqueType)
}

func describe(s *strings.Builder, t reflect.Type, within []reflect.Type) {
	if t.Kind() == reflect.Struct && isOpaque(t) {
		t = reflect.TypeFor[[]byte]()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.WriteString(t.Kind().String())
	case reflect.Pointer:
		s.WriteByte('*')
		describe(s, t.Elem(), within)
	case reflect.Slice:
		s.WriteString("[]")
		describe(s, t.Elem(), within)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("pack: %s: its keys are no strings", t))
		}
		s.WriteString("map ")
		describe(s, t.Elem(), within)
	case reflect.Struct:
		if t.NumField() == 0 || slices.Contains(within, t) {
			panic(fmt.Sprintf("pack: %s has no fields, or is within itself", t))
		}
		s.WriteByte('{')
		for f := range t.Fields() {
			if !f.IsExported() {
				panic(fmt.Sprintf("pack: %s.%s is not exported", t, f.Name))
			}
			s.WriteString(f.Name + " ")
			describe(s, f.Type, append(within, t))
			s.WriteByte(';')
		}
		s.WriteByte('}')
	default:
		panic(fmt.Sprintf("pack: %s can't be written", t))
	}
}
