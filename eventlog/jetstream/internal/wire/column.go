package wire

import (
	"bytes"
	"slices"
)

// Columns of a segment. A column of equal values stores one of them.
const (
	columnEqual = iota
	columnVaries
)

func numbersOf[T any](all []T, of func(*T) int64) []int64 {
	numbers := make([]int64, len(all))
	for i := range all {
		numbers[i] = of(&all[i])
	}
	return numbers
}

// column has the values of all rows: one value if it is the same for all.
type column[T any] []T

func (c column[T]) at(row int) T {
	if len(c) == 1 {
		return c[0]
	}
	return c[row]
}

// numbers appends a column of numbers.
func (p *packer) numbers(all []int64) {
	switch {
	case len(all) == 0:
	case !slices.ContainsFunc(all, func(n int64) bool { return n != all[0] }):
		p.b = append(p.b, columnEqual)
		p.int(all[0])
	default:
		p.b = append(p.b, columnVaries)
		for _, n := range all {
			p.int(n)
		}
	}
}

func (u *unpacker) numbers(n int) column[int64] {
	if n == 0 {
		return nil
	}
	if u.atMost(columnVaries) == columnEqual {
		n = 1
	}
	all := make([]int64, n)
	for i := range all {
		all[i] = u.int()
	}
	return all
}

// differences appends a column of numbers as the first one and the difference of each to
// the one before. It overwrites all.
func (p *packer) differences(all []int64) {
	if len(all) == 0 {
		return
	}
	p.int(all[0])
	for i := len(all) - 1; i > 0; i-- {
		all[i] -= all[i-1]
	}
	p.numbers(all[1:])
}

func (u *unpacker) differences(n int) column[int64] {
	if n == 0 {
		return nil
	}
	all := make([]int64, n)
	all[0] = u.int()
	varies := n > 1 && u.atMost(columnVaries) == columnVaries
	difference := int64(0)
	for i := 1; i < n; i++ {
		if i == 1 || varies {
			difference = u.int()
		}
		all[i] = all[i-1] + difference
	}
	return all
}

// strings appends a column of strings: the lengths, then the bytes of all.
func (p *packer) strings(all [][]byte) {
	switch {
	case len(all) == 0:
	case !slices.ContainsFunc(all, func(b []byte) bool { return !bytes.Equal(b, all[0]) }):
		p.b = append(p.b, columnEqual)
		p.bytes(all[0])
	default:
		p.b = append(p.b, columnVaries)
		for _, b := range all {
			p.uint(uint64(len(b)))
		}
		for _, b := range all {
			p.b = append(p.b, b...)
		}
	}
}

func (u *unpacker) strings(n int) column[[]byte] {
	if n == 0 {
		return nil
	}
	if u.atMost(columnVaries) == columnEqual {
		return column[[]byte]{u.bytes()}
	}
	lengths := unpacker{b: u.b}
	for range n {
		u.uint()
	}
	all := make([][]byte, n)
	for i := range all {
		all[i] = u.take(lengths.uint())
	}
	return all
}
