package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of bytes, at least 0. It is written as an integer, with
// or without a unit: 1024, 512MiB, 2GB.
type Bytes int64

// byteUnits are from the largest to the smallest of either kind.
var byteUnits = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

// String writes b with the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range byteUnits[:4] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes reads what Bytes is written as.
func ParseBytes(s string) (b Bytes, ok bool) {
	size := int64(1)
	for _, u := range byteUnits {
		if number, found := strings.CutSuffix(s, u.name); found {
			s, size = strings.TrimRight(number, " "), u.size
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/size {
		return 0, false
	}
	return Bytes(int64(n) * size), true
}

// UnmarshalText reads what String writes, so that flags can be amounts.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, ok := ParseBytes(string(text))
	if !ok {
		return errors.New("must be an amount of bytes such as 10MiB")
	}
	*b = n
	return nil
}
