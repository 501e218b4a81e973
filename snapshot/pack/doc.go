// Package pack encodes Go values in bytes that are decoded many times faster than JSON.
// The strings and byte slices of a decoded value are parts of the encoded bytes.
//
// It is for caches: only a program with the same types can decode a value, see [Schema].
// The encoding is deterministic. If a long list grows at its end, the encoding of its
// beginning does not change: the bytes can be cut where [Encode] says, and successive
// states share most pieces.
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

// ErrDamaged: bytes are not an encoding by [Encode] of a value of that type.
var ErrDamaged = errors.New("pack: damaged")

// format is the version of the encoding, as [Schema] returns it.
const format = 1

// Schema identifies the encoding of values of type T, in 16 hexadecimal digits. It panics
// if T contains a type that can't be encoded: an interface, a struct with unexported
// fields or no fields, a function, a channel, an array, a complex number, a map whose
// keys are not strings, or a recursive type.
func Schema[T any]() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d ", format)
	describe(&s, reflect.TypeFor[T](), nil)
	sum := sha256.Sum256([]byte(s.String()))
	return hex.EncodeToString(sum[:8])
}

// opaque is a struct of one field that encodes and decodes itself.
type opaque interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

var opaqueType = reflect.TypeFor[opaque]()

// isOpaque reports whether values of a struct type encode themselves.
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
