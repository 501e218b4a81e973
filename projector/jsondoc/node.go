package jsondoc

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync/atomic"
)

const (
	// maxLeaf is up to how many bytes an array or object is held as text.
	maxLeaf = 4 << 10
	// meanRun is about how long the text of a run is, in bytes. One of more than
	// maxRun is split, two of together less than minRun are joined.
	meanRun = 3 << 10
	maxRun  = 4 << 10
	minRun  = 2 << 10
)

// node is a value: text, or the runs of an array or object. It never changes.
type node struct {
	raw []byte
	// memo is what was made of a large value to change it: a patch that fails
	// leaves that for the next one.
	memo atomic.Pointer[node]

	runs   []run
	object bool
	plain  bool // of an object: its keys are written in one way, and are all different
	size   int  // of the text
	count  int  // of elements
	depth  int
	wide   int // how long the longest key is, if it is longer than maxLeaf
}

// run is a part of an array or object: several small elements, or a large one.
type run struct {
	text   []byte   // elements with commas between them; or, in an object, the key of child with its colon
	child  *node    // the value, if there is a large one
	hashes []uint32 // of the keys in the text of an object, rising
	count  int
	depth  int
	wide   int
}

func (n *node) len() int {
	if n.raw != nil {
		return len(n.raw)
	}
	return n.size
}

func (n *node) nesting() int {
	if n.raw == nil {
		return n.depth
	}
	if n.raw[0] != '{' && n.raw[0] != '[' {
		return 0
	}
	_, depth := skip(n.raw, 0)
	return depth
}

func (n *node) null() bool { return string(n.raw) == "null" }

func (n *node) appendTo(b []byte) []byte {
	if n.raw != nil {
		return append(b, n.raw...)
	}
	brackets := "[]"
	if n.object {
		brackets = "{}"
	}
	b = append(b, brackets[0])
	for i, r := range n.runs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r.text...)
		if r.child != nil {
			b = r.child.appendTo(b)
		}
	}
	return append(b, brackets[1])
}

func (r *run) len() int {
	if r.child != nil {
		return len(r.text) + r.child.len()
	}
	return len(r.text)
}

// list returns the array or object of the given runs.
func list(object bool, runs []run) *node {
	n := &node{object: object, runs: runs, size: 2 + max(0, len(runs)-1)}
	for i := range runs {
		r := &runs[i]
		n.size += r.len()
		n.count += r.count
		n.depth = max(n.depth, r.depth)
		n.wide = max(n.wide, r.wide)
	}
	n.depth++
	return n
}

func childRun(key []byte, child *node) run {
	r := run{text: key, child: child, count: 1, depth: child.nesting()}
	if len(key) > 0 {
		r.addKey(key[:len(key)-1])
	}
	return r
}

func (r *run) addKey(key []byte) {
	r.hashes = append(r.hashes, hash(key))
	if len(key) > maxLeaf {
		r.wide = max(r.wide, len(key))
	}
}

func textRun(text []byte, object bool) run {
	r := run{text: text}
	for i := 0; i < len(text); {
		e := elementAt(text, i, object)
		if object {
			r.addKey(text[e.from : e.value-1])
		}
		r.count++
		r.depth = max(r.depth, e.depth)
		i = e.to + 1
	}
	slices.Sort(r.hashes)
	return r
}

var seed = maphash.MakeSeed()

func hash(key []byte) uint32 { return uint32(maphash.Bytes(seed, key)) }

// sealed returns what an array or object is held as at its size.
func (n *node) sealed() *node {
	if n.raw == nil && n.size <= maxLeaf {
		return &node{raw: n.appendTo(make([]byte, 0, n.size))}
	}
	return n
}

// value returns the k-th element of a run.
func (r *run) value(k int, object bool) *node {
	if r.child != nil {
		return r.child
	}
	e := nth(r.text, k, object)
	return &node{raw: r.text[e.value:e.to:e.to]}
}

// place returns where the element with an index is: its run, and its place in
// there. The end of the last run is where the next one would be.
func (n *node) place(index int) (at, k int) {
	for at = range n.runs {
		if index < n.runs[at].count {
			return at, index
		}
		if at == len(n.runs)-1 {
			break
		}
		index -= n.runs[at].count
	}
	return at, index
}

func (n *node) at(index int) *node {
	at, k := n.place(index)
	return n.runs[at].value(k, n.object)
}

// find returns the index of the member with a key as it is written, or -1.
func (n *node) find(key []byte) int {
	h, before := hash(key), 0
	for i := range n.runs {
		r := &n.runs[i]
		if _, found := slices.BinarySearch(r.hashes, h); found {
			if r.child != nil {
				if bytes.Equal(r.text[:len(r.text)-1], key) {
					return before
				}
			} else {
				for k, from := 0, 0; from < len(r.text); k++ {
					e := elementAt(r.text, from, true)
					if bytes.Equal(r.text[e.from:e.value-1], key) {
						return before + k
					}
					from = e.to + 1
				}
			}
		}
		before += r.count
	}
	return -1
}

// splice puts a value before the element with an index, or in its place. No
// value removes the element. Key is empty in an array.
func (n *node) splice(index int, instead bool, key []byte, v *node) *node {
	var put []run // in place of the run
	at, k := n.place(index)
	switch {
	case len(n.runs) == 0:
		put = n.pieces(nil, key, v, nil)
	case n.runs[at].child != nil:
		r := n.runs[at]
		put = n.pieces(nil, key, v, nil)
		if !instead && k == 0 {
			put = append(put, r)
		} else if !instead {
			put = append([]run{r}, put...)
		}
	default:
		text := n.runs[at].text
		before, after := text, []byte(nil)
		if k < n.runs[at].count {
			e := nth(text, k, n.object)
			before, after = text[:max(0, e.from-1)], text[e.from:]
			if instead {
				after = text[min(len(text), e.to+1):]
			}
		}
		put = n.pieces(before, key, v, after)
	}
	if len(n.runs) == 0 {
		return n.with(put)
	}
	runs := make([]run, 0, len(n.runs)+len(put))
	runs = append(runs, n.runs[:at]...)
	for _, r := range put {
		runs = n.push(runs, r)
	}
	for i, r := range n.runs[at+1:] {
		if i > 0 {
			runs = append(runs, n.runs[at+1+i:]...)
			break
		}
		runs = n.push(runs, r)
	}
	return n.with(runs)
}

func (n *node) with(runs []run) *node {
	next := list(n.object, runs)
	next.plain = n.plain
	return next
}

// push adds a run, and joins it with the last one if both are short.
func (n *node) push(runs []run, r run) []run {
	if last := len(runs) - 1; last >= 0 && runs[last].child == nil && r.child == nil && len(runs[last].text)+len(r.text) < minRun {
		r = textRun(join(runs[last].text, r.text), n.object)
		runs = runs[:last]
	}
	return append(runs, r)
}

// pieces returns the runs of text, a value if there is one, and text.
func (n *node) pieces(before, key []byte, v *node, after []byte) (runs []run) {
	add := func(text []byte) {
		for len(text) > maxRun { // few elements, or two halves
			cut := elementAt(text, 0, n.object).to
			for cut < len(text)/2 {
				cut = elementAt(text, cut+1, n.object).to
			}
			if cut >= len(text) {
				break
			}
			runs = append(runs, textRun(text[:cut:cut], n.object))
			text = text[cut+1:]
		}
		if len(text) > 0 {
			runs = append(runs, textRun(text, n.object))
		}
	}
	if v != nil && v.len() > maxLeaf {
		add(before)
		runs = append(runs, childRun(key, v))
		add(after)
		return runs
	}
	var text []byte
	if v != nil {
		text = v.appendTo(append(make([]byte, 0, len(key)+v.len()), key...))
	}
	add(join(before, text, after))
	return runs
}

// join returns texts with commas between them.
func join(texts ...[]byte) []byte {
	size := 0
	for _, t := range texts {
		size += len(t) + 1
	}
	all := make([]byte, 0, size)
	for _, t := range texts {
		if len(all) > 0 && len(t) > 0 {
			all = append(all, ',')
		}
		all = append(all, t...)
	}
	return all
}
