package pack

import (
	"encoding"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math"
	"reflect"
	"slices"
)

// Where values are cut. Long lists are cut after elements whose own bytes select them, so
// that the same elements are cut at the same places regardless of the elements before
// them.
const (
	// LeastPiece is the least size of a piece of a long list, in bytes; only the last
	// piece may be smaller.
	LeastPiece = 4 << 10
	// meanPiece is about how many bytes a piece has in addition, on average.
	meanPiece = 12 << 10
	// mostPiece is the size at which a piece is cut whatever its bytes are.
	mostPiece = 64 << 10
	// longList is from how many elements on a list is cut into pieces.
	longList = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumSize is the size of the checksum at the end.
const sumSize = 4

// Encode returns v's bytes and the places where they can be cut, rising. T must be a type
// that [Schema] accepts.
func Encode[T any](v *T) (b []byte, cuts []int) {
	var e encoder
	e.value(reflect.ValueOf(v).Elem())
	e.cut()
	return binary.BigEndian.AppendUint32(e.b, crc32.Checksum(e.b, castagnoli)), e.cuts
}

type encoder struct {
	b     []byte
	cuts  []int
	begin int // of the current piece
}

func (e *encoder) cut() {
	if len(e.b) > e.begin {
		e.begin = len(e.b)
		e.cuts = append(e.cuts, e.begin)
	}
}

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			e.b = append(e.b, 1)
		} else {
			e.b = append(e.b, 0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.b = binary.AppendVarint(e.b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.uint(v.Uint())
	case reflect.Float64:
		e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(v.Float()))
	case reflect.String:
		s := v.String()
		e.uint(uint64(len(s)))
		e.cutAt(len(s))
		e.b = append(e.b, s...)
		e.cutAt(len(s))
	case reflect.Pointer:
		if v.IsNil() {
			e.b = append(e.b, 0)
			return
		}
		e.b = append(e.b, 1)
		e.value(v.Elem())
	case reflect.Slice:
		e.slice(v)
	case reflect.Map:
		e.mapping(v)
	case reflect.Struct:
		if isOpaque(v.Type()) {
			b, err := v.Interface().(encoding.BinaryAppender).AppendBinary(nil)
			if err != nil {
				panic("pack: " + v.Type().String() + ": " + err.Error())
			}
			e.slice(reflect.ValueOf(b))
			return
		}
		for i := range v.NumField() {
			e.value(v.Field(i))
		}
	default:
		panic("pack: " + v.Type().String() + " can't be written")
	}
}

// cutAt cuts before and after a value of that many bytes, if it is long.
func (e *encoder) cutAt(size int) {
	if size >= LeastPiece {
		e.cut()
	}
}

// slice writes the length plus one, or 0 for nil, and the elements.
func (e *encoder) slice(v reflect.Value) {
	if v.IsNil() {
		e.uint(0)
		return
	}
	n := v.Len()
	e.uint(uint64(n) + 1)
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.cutAt(n)
		e.b = append(e.b, v.Bytes()...)
		e.cutAt(n)
		return
	}
	e.list(n, func(i int) { e.value(v.Index(i)) })
}

// mapping is slice for a map, sorted by key.
func (e *encoder) mapping(v reflect.Value) {
	if v.IsNil() {
		e.uint(0)
		return
	}
	values := make(map[string]reflect.Value, v.Len())
	for k, x := range v.Seq2() {
		values[k.String()] = x
	}
	keys := slices.Sorted(maps.Keys(values))
	e.uint(uint64(len(keys)) + 1)
	e.list(len(keys), func(i int) {
		e.uint(uint64(len(keys[i])))
		e.b = append(e.b, keys[i]...)
		e.value(values[keys[i]])
	})
}

func (e *encoder) list(n int, element func(int)) {
	if n < longList {
		for i := range n {
			element(i)
		}
		return
	}
	e.cut()
	for i := range n {
		from := len(e.b)
		element(i)
		e.cutBehind(max(from, e.begin))
	}
	e.cut()
}

// cutBehind cuts after the element that begins at from, if its bytes select it.
func (e *encoder) cutBehind(from int) {
	size, chosen := uint64(len(e.b)-from), uint64(crc32.Checksum(e.b[from:], castagnoli))
	piece := len(e.b) - e.begin
	if piece >= mostPiece || piece >= LeastPiece && chosen*meanPiece < size<<32 {
		e.cut()
	}
}
