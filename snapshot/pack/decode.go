package pack

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"sync"
	"unsafe"
)

// Decode decodes bytes of [Encode] into v, which must be zero. Strings and byte slices in
// v are parts of b, which must not change any more. The error is ErrDamaged; v can't be
// used then.
func Decode[T any](b []byte, v *T) error {
	if len(b) < sumSize {
		return fmt.Errorf("%w: cut", ErrDamaged)
	}
	body, sum := b[:len(b)-sumSize], binary.BigEndian.Uint32(b[len(b)-sumSize:])
	if crc32.Checksum(body, castagnoli) != sum {
		return fmt.Errorf("%w: checksum", ErrDamaged)
	}
	d := decoder{b: body, s: unsafe.String(unsafe.SliceData(body), len(body))}
	d.value(reflect.ValueOf(v).Elem())
	if d.bad || d.at != len(body) {
		return fmt.Errorf("%w: not of type %T", ErrDamaged, v)
	}
	return nil
}

// decoder reads b; after the first error it reads zeros.
type decoder struct {
	b   []byte
	s   string // b as a string
	at  int
	bad bool
}

func (d *decoder) fail() {
	d.bad, d.at = true, len(d.b)
}

func (d *decoder) byte() byte {
	if d.at == len(d.b) {
		d.fail()
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

func (d *decoder) uint() uint64 {
	if d.at < len(d.b) && d.b[d.at] < 0x80 { // fast path: most numbers are small
		d.at++
		return uint64(d.b[d.at-1])
	}
	n, size := binary.Uvarint(d.b[d.at:])
	if size <= 0 {
		d.fail()
		return 0
	}
	d.at += size
	return n
}

func (d *decoder) int() int64 {
	n := d.uint()
	return int64(n>>1) ^ -int64(n&1)
}

// take returns the range of the next n bytes.
func (d *decoder) take(n uint64) (from, to int) {
	if n > uint64(len(d.b)-d.at) {
		d.fail()
		return 0, 0
	}
	from = d.at
	d.at += int(n)
	return from, d.at
}

// count reads the length of a list whose elements have at least least bytes each; some is
// false for nil.
func (d *decoder) count(least int) (n int, some bool) {
	c := d.uint()
	if c == 0 {
		return 0, false
	}
	if c-1 > uint64((len(d.b)-d.at)/least) {
		d.fail()
		return 0, false
	}
	return int(c - 1), true
}

func (d *decoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.byte() == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(d.int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(d.uint())
	case reflect.Float64:
		if from, to := d.take(8); to > 0 {
			v.SetFloat(math.Float64frombits(binary.BigEndian.Uint64(d.b[from:to])))
		}
	case reflect.String:
		if n := d.uint(); n > 0 {
			from, to := d.take(n)
			v.SetString(d.s[from:to])
		}
	case reflect.Pointer:
		if d.byte() == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem())
		}
	case reflect.Slice:
		d.slice(v)
	case reflect.Map:
		d.mapping(v)
	case reflect.Struct:
		if isOpaque(v.Type()) {
			var b []byte
			d.slice(reflect.ValueOf(&b).Elem())
			if v.Addr().Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b) != nil {
				d.fail()
			}
			return
		}
		for i := range v.NumField() {
			d.value(v.Field(i))
		}
	default:
		d.fail()
	}
}

func (d *decoder) slice(v reflect.Value) {
	t := v.Type()
	if t.Elem().Kind() == reflect.Uint8 {
		if n, some := d.count(1); some {
			from, to := d.take(uint64(n))
			v.SetBytes(d.b[from:to:to])
		}
		return
	}
	n, some := d.count(least(t.Elem()))
	if !some {
		return
	}
	v.Set(reflect.MakeSlice(t, n, n))
	for i := range n {
		d.value(v.Index(i))
	}
}

func (d *decoder) mapping(v reflect.Value) {
	t := v.Type()
	n, some := d.count(1 + least(t.Elem()))
	if !some {
		return
	}
	v.Set(reflect.MakeMapWithSize(t, n))
	key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	for range n {
		from, to := d.take(d.uint())
		key.SetString(d.s[from:to])
		value.SetZero()
		d.value(value)
		v.SetMapIndex(key, value)
	}
}

// leasts has the least sizes of types.
var leasts sync.Map

// least returns the least size of a value of a type, at least 1, so that no more memory
// is allocated than the bytes can need.
func least(t reflect.Type) int {
	switch t.Kind() {
	case reflect.Float64:
		return 8
	case reflect.Struct:
		if n, ok := leasts.Load(t); ok {
			return n.(int)
		}
		n := 0
		for f := range t.Fields() {
			n += least(f.Type)
		}
		n = max(n, 1)
		leasts.Store(t, n)
		return n
	}
	return 1
}
