package fact

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
)

// MaxDimensions is how many numbers a [Vector] has at most.
const MaxDimensions = 8192

// Vector is an embedding. In JSON it is the base64 of its numbers as
// little-endian 32-bit floats, a quarter of what decimals would take.
type Vector []float32

// MarshalJSON implements json.Marshaler.
func (v Vector) MarshalJSON() ([]byte, error) { return json.Marshal(v.Bytes()) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *Vector) UnmarshalJSON(raw []byte) error {
	var b []byte
	if err := json.Unmarshal(raw, &b); err != nil {
		return errors.New("a vector must be the base64 of 32-bit floats")
	}
	got, err := VectorOf(b)
	*v = got
	return err
}

// Bytes are the numbers as little-endian 32-bit floats.
func (v Vector) Bytes() []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// VectorOf is the inverse of Bytes.
func VectorOf(b []byte) (Vector, error) {
	if len(b)%4 != 0 {
		return nil, errors.New("a vector must be whole 32-bit floats")
	}
	v := make(Vector, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}

// Finite reports whether all numbers are finite.
func (v Vector) Finite() bool {
	for _, x := range v {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}
