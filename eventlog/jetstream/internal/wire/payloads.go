package wire

import (
	"strconv"
)

// A segment stores payloads as columns: the JSON that payloads of one type have in common
// is stored once, as a form, and the values of each member one after the other. The
// division is lexical, at the members of the outermost object. Joining the parts gives
// the same bytes again, whatever the payload is.

const (
	// A form has one of these bytes in place of each value.
	holeBytes  = 0x00 // any bytes
	holeNumber = 0x01 // a whole number as strconv writes it

	// maxHoles bounds the values of a payload, and maxForms the forms of a segment. A
	// payload beyond these is stored whole.
	maxHoles = 32
	maxForms = 128
	// maxDigits is how many digits always fit an int64.
	maxDigits = 18
)

// wholeForm is the form of a payload that is stored whole.
const wholeForm = string(rune(holeBytes))

// value is a value that a form leaves out: the bytes from..to of the payload, or a
// number.
type value struct {
	from, to int
	number   int64
}

// cut appends the payload's form to form, and the values that the form leaves out to
// values.
func cut(payload, form []byte, values []value) ([]byte, []value) {
	c := cutter{payload: payload, form: form, values: values}
	if c.object() && len(c.values)-len(values) <= maxHoles {
		return c.form, c.values
	}
	return append(form, wholeForm...), append(values, value{to: len(payload)})
}

// cutter cuts one payload. Its methods report whether the payload has the expected
// syntax.
type cutter struct {
	payload []byte
	at      int // the payload is read up to here
	copied  int // the payload is in form or values up to here
	form    []byte
	values  []value
}

// object cuts a JSON object without spaces between its members.
func (c *cutter) object() bool {
	for before := byte('{'); c.next(before); before = ',' {
		if !c.name() || !c.next(':') || !c.value() {
			return false
		}
		if c.at == len(c.payload)-1 {
			c.form = append(c.form, c.payload[c.copied:]...)
			return c.next('}')
		}
	}
	return false
}

func (c *cutter) next(b byte) bool {
	if c.at == len(c.payload) || c.payload[c.at] != b {
		return false
	}
	c.at++
	return true
}

// name reads a member's name. A name with a byte that marks a hole can't be in a form.
func (c *cutter) name() bool {
	from := c.at
	c.at = stringEnd(c.payload, from)
	if c.at < 0 {
		return false
	}
	for _, b := range c.payload[from:c.at] {
		if b <= holeNumber {
			return false
		}
	}
	return true
}

// value leaves a member's value out of the form.
func (c *cutter) value() bool {
	if c.at == len(c.payload) {
		return false
	}
	from := c.at
	switch b := c.payload[from]; {
	case b == '"':
		c.at = stringEnd(c.payload, from)
		if c.at < 0 {
			return false
		}
		c.leave(holeBytes, value{from: from + 1, to: c.at - 1})
		return true
	case b == '{' || b == '[':
		c.at = nestedEnd(c.payload, from)
	default:
		for c.at < len(c.payload) && c.payload[c.at] != ',' && c.payload[c.at] != '}' {
			c.at++
		}
	}
	if c.at <= from {
		return false
	}
	if n, ok := wholeNumber(c.payload[from:c.at]); ok {
		c.leave(holeNumber, value{from: from, to: c.at, number: n})
	} else {
		c.leave(holeBytes, value{from: from, to: c.at})
	}
	return true
}

// leave puts a hole in place of v.
func (c *cutter) leave(kind byte, v value) {
	c.form = append(append(c.form, c.payload[c.copied:v.from]...), kind)
	c.copied = v.to
	c.values = append(c.values, v)
}

// wholeNumber parses a number that strconv writes with the same digits.
func wholeNumber(b []byte) (n int64, ok bool) {
	digits := b
	if b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > maxDigits || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if b[0] == '-' {
		n = -n
	}
	return n, true
}

// stringEnd returns the end of the JSON string that begins at from, -1 if there is none.
func stringEnd(b []byte, from int) int {
	if from >= len(b) || b[from] != '"' {
		return -1
	}
	for i := from + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// nestedEnd returns the end of the JSON object or array that begins at from, -1 if it
// does not end.
func nestedEnd(b []byte, from int) int {
	for i, depth := from, 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i) - 1; i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// payloads appends the forms, the form of each payload, and the values of each hole of
// each form.
func (p *packer) payloads(records []Stored) {
	var forms []string
	known := map[string]int64{}
	of := make([]int64, len(records))
	begins := make([]int, len(records)) // of each payload's values
	values := make([]value, 0, 8*len(records))
	var form []byte
	for i := range records {
		payload := records[i].Payload
		begins[i] = len(values)
		form, values = cut(payload, form[:0], values)
		f, ok := known[string(form)]
		if !ok && len(forms) >= maxForms-1 {
			form, values = append(form[:0], wholeForm...), append(values[:begins[i]], value{to: len(payload)})
			f, ok = known[wholeForm]
		}
		if !ok {
			f = int64(len(forms))
			forms = append(forms, string(form))
			known[forms[f]] = f
		}
		of[i] = f
	}
	p.uint(uint64(len(forms)))
	for _, f := range forms {
		p.bytes([]byte(f))
	}
	p.numbers(of)
	rows := rowsOf(of, len(forms))
	var texts [][]byte
	var numbers []int64
	for f, form := range forms {
		for hole, kind := range holesOf(form) {
			texts, numbers = texts[:0], numbers[:0]
			for _, row := range rows[f] {
				v := values[begins[row]+hole]
				if kind == holeNumber {
					numbers = append(numbers, v.number)
				} else {
					texts = append(texts, records[row].Payload[v.from:v.to])
				}
			}
			if kind == holeNumber {
				p.differences(numbers)
			} else {
				p.strings(texts)
			}
		}
	}
}

// rowsOf lists the records of each form.
func rowsOf(of []int64, forms int) [][]int {
	rows := make([][]int, forms)
	for row, f := range of {
		rows[f] = append(rows[f], row)
	}
	return rows
}

// holesOf returns the kinds of a form's holes.
func holesOf(form string) (kinds []byte) {
	for i := range len(form) {
		if form[i] <= holeNumber {
			kinds = append(kinds, form[i])
		}
	}
	return kinds
}

// payloads decodes the output of packer.payloads.
func (u *unpacker) payloads(records []Stored) {
	forms := make([]form, u.atMost(maxForms))
	for i := range forms {
		forms[i] = formOf(string(u.bytes()))
		if len(forms[i].holes) > maxHoles {
			u.fail()
			return
		}
	}
	of := u.numbers(len(records))
	if u.err != nil {
		return
	}
	for row := range records {
		f := of.at(row)
		if f < 0 || f >= int64(len(forms)) {
			u.fail()
			return
		}
		forms[f].rows++
	}
	for f := range forms {
		for h := range forms[f].holes {
			hole := &forms[f].holes[h]
			if hole.kind == holeNumber {
				hole.numbers = u.differences(forms[f].rows)
			} else {
				hole.texts = u.strings(forms[f].rows)
			}
		}
	}
	if u.err != nil {
		return
	}
	all := make([]byte, 0, typicalPayload*len(records))
	ends := make([]int, len(records))
	for i := range records {
		all = forms[of.at(i)].join(all)
		if len(all) > maxUnpacked {
			u.fail()
			return
		}
		ends[i] = len(all)
	}
	begin := 0
	for i, end := range ends {
		records[i].Payload = all[begin:end:end]
		begin = end
	}
}

// typicalPayload is about the size of a payload with one word, in bytes.
const typicalPayload = 144

// form is a form with the values of its payloads.
type form struct {
	rows   int      // payloads
	joined int      // payloads joined so far
	pieces []string // the text between the holes
	holes  []hole
}

type hole struct {
	kind    byte
	texts   column[[]byte]
	numbers column[int64]
}

func formOf(text string) (f form) {
	begin := 0
	for i := range len(text) {
		if text[i] <= holeNumber && len(f.holes) <= maxHoles {
			f.pieces, f.holes = append(f.pieces, text[begin:i]), append(f.holes, hole{kind: text[i]})
			begin = i + 1
		}
	}
	f.pieces = append(f.pieces, text[begin:])
	return f
}

// join appends the form's next payload.
func (f *form) join(to []byte) []byte {
	for i := range f.holes {
		h := &f.holes[i]
		to = append(to, f.pieces[i]...)
		if h.kind == holeNumber {
			to = strconv.AppendInt(to, h.numbers.at(f.joined), 10)
		} else {
			to = append(to, h.texts.at(f.joined)...)
		}
	}
	f.joined++
	return append(to, f.pieces[len(f.holes)]...)
}
