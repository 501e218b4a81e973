package jsondoc

import "bytes"

// The functions of this file read compact and valid JSON.

// skipString returns the end of the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; ; {
		i += bytes.IndexByte(b[i:], '"')
		n := 0
		for b[i-1-n] == '\\' {
			n++
		}
		i++
		if n%2 == 0 {
			return i
		}
	}
}

// skip returns the end of the value that begins at i, and how deeply its arrays
// and objects are nested.
func skip(b []byte, i int) (end, depth int) {
	open := 0
	for {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			open++
			depth = max(depth, open)
			i++
			continue
		case '}', ']':
			open--
			i++
		case ',', ':':
			i++
			continue
		default:
			for i < len(b) && b[i] != ',' && b[i] != ']' && b[i] != '}' {
				i++
			}
		}
		if open == 0 {
			return i, depth
		}
	}
}

// element is where an element of an array, or a member of an object, is in a text.
type element struct{ from, value, to, depth int }

// elementAt reads the one that begins at i.
func elementAt(b []byte, i int, object bool) element {
	e := element{from: i, value: i}
	if object {
		e.value = skipString(b, i) + 1
	}
	e.to, e.depth = skip(b, e.value)
	return e
}

// nth returns the k-th element of a text that has more.
func nth(b []byte, k int, object bool) element {
	e := elementAt(b, 0, object)
	for range k {
		e = elementAt(b, e.to+1, object)
	}
	return e
}

// piece is what becomes a run of a large array or object.
type piece struct {
	from, value, to int
	child           *node // the value is large; else it is text of several elements
}

// parse reads a text.
func parse(b []byte) *node {
	n, _, _ := parseAt(b, 0)
	if n == nil {
		n = &node{raw: b}
	}
	return n
}

// parseAt reads the value that begins at i. It returns no node for one that is
// not large. Each byte is looked at twice at most, however deep it is.
func parseAt(b []byte, i int) (n *node, end, depth int) {
	if b[i] != '{' && b[i] != '[' {
		if end, _ = skip(b, i); end-i > maxLeaf {
			n = &node{raw: b[i:end]}
		}
		return n, end, 0
	}
	begin, object := i, b[i] == '{'
	var pieces []piece
	from := -1 // of text that is in no piece yet
	for i++; b[i] != '}' && b[i] != ']'; {
		e := element{from: i, value: i}
		if object {
			e.value = skipString(b, i) + 1
		}
		var child *node
		child, e.to, e.depth = parseAt(b, e.value)
		depth = max(depth, e.depth)
		if child != nil {
			if from >= 0 {
				pieces = append(pieces, piece{from: from, to: e.from - 1})
			}
			pieces = append(pieces, piece{from: e.from, value: e.value, child: child})
			from = -1
		} else {
			if from < 0 {
				from = e.from
			}
			if e.to-from >= meanRun {
				pieces = append(pieces, piece{from: from, to: e.to})
				from = -1
			}
		}
		if i = e.to; b[i] == ',' {
			i++
		}
	}
	if end = i + 1; end-begin <= maxLeaf {
		return nil, end, depth + 1
	}
	if from >= 0 {
		pieces = append(pieces, piece{from: from, to: i})
	}
	runs := make([]run, len(pieces))
	for k, p := range pieces {
		if p.child != nil {
			runs[k] = childRun(b[p.from:p.value], p.child)
		} else {
			runs[k] = textRun(b[p.from:p.to], object)
		}
	}
	return list(object, runs), end, depth + 1
}
