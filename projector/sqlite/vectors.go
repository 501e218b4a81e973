package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/helixd/helixd/eventlog"
)

// maxVectorBytes is how much memory the vectors of all scopes may take that are
// kept between questions. What does not fit is read from the file for each
// question.
const maxVectorBytes = 128 << 20

// fewVectors are not kept: they are read in less than a millisecond.
const fewVectors = 100

// unit is a vector of length 1: the cosine of two is their dot product.
type unit []float32

// unitOf makes a vector's length 1, in place. It returns nil if the vector has
// no direction.
func unitOf(v []float32) unit {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
		return nil
	}
	for i, x := range v {
		v[i] = float32(float64(x) / length)
	}
	return v
}

// dot has four sums, so that an addition does not wait for the one before.
func (u unit) dot(v unit) float64 {
	var a, b, c, d float32
	i := 0
	for ; i+8 <= len(u); i += 8 {
		x, y := (*[8]float32)(u[i:]), (*[8]float32)(v[i:])
		a += x[0]*y[0] + x[4]*y[4]
		b += x[1]*y[1] + x[5]*y[5]
		c += x[2]*y[2] + x[6]*y[6]
		d += x[3]*y[3] + x[7]*y[7]
	}
	for ; i < len(u); i++ {
		a += u[i] * v[i]
	}
	return float64(a) + float64(b) + float64(c) + float64(d)
}

// embedding is the vector of a memory.
type embedding struct {
	id, memory int64
	unit       unit
}

// space names vectors that can be compared.
type space struct {
	scope      int64
	model      string
	dimensions int
}

// vectorCache keeps the vectors of the scopes that were asked for last: to read
// them from the file takes ten times as long as to compare them.
type vectorCache struct {
	maxBytes int
	mu       sync.Mutex
	sets     []*vectorSet // the last used is last
	bytes    int
}

// vectorSet are the vectors of a space, or the oldest of them.
type vectorSet struct {
	space space
	bytes int // as the cache knows them

	mu      sync.Mutex
	all     []embedding // by id; grows at its end only
	last    int64       // the largest id that was read
	removed int64       // how many were removed before
}

// each calls f with each vector of a space that a transaction has.
func (c *vectorCache) each(ctx context.Context, tx *sql.Tx, of space, f func(embedding)) error {
	var last, removed int64
	err := tx.QueryRowContext(ctx, `SELECT removed, coalesce((SELECT max(id) FROM vectors WHERE scope = m.scope AND model = m.model), 0)
		FROM models m WHERE scope = ? AND model = ?`, of.scope, of.model).Scan(&removed, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	s := c.get(of)
	kept, err := s.read(ctx, tx, last, removed, c.maxBytes, f)
	if err != nil {
		return err
	}
	c.weigh(s, len(kept))
	for _, e := range kept[:sort.Search(len(kept), func(i int) bool { return kept[i].id > last })] {
		f(e)
	}
	return nil
}

// bytes is how much memory a vector takes, about.
func (s space) bytes() int { return 4*s.dimensions + 64 }

// read brings the set to where a transaction is, in which last is the largest
// id and so many vectors were removed. It returns what is kept, to which later
// reads only add, and calls f with what is not kept.
func (s *vectorSet) read(ctx context.Context, tx *sql.Tx, last, removed int64, maxBytes int, f func(embedding)) ([]embedding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if removed != s.removed {
		s.all, s.last, s.removed = nil, 0, removed
	}
	if last <= s.last {
		return s.all, nil
	}
	most := maxBytes / s.space.bytes()
	const text = "SELECT id, memory, vector FROM vectors WHERE scope = ? AND model = ? AND length(vector) = ? AND id > ? ORDER BY id"
	err := each(ctx, tx, text, []any{s.space.scope, s.space.model, 4 * s.space.dimensions, s.last}, func(row *sql.Rows) error {
		var e embedding
		var raw sql.RawBytes
		if err := row.Scan(&e.id, &e.memory, &raw); err != nil {
			return err
		}
		v, err := eventlog.VectorOf(raw)
		if err != nil {
			return err
		}
		if e.unit = unitOf(v); e.unit == nil {
			return nil
		}
		if len(s.all) >= most {
			f(e)
			return nil
		}
		s.all, s.last = append(s.all, e), e.id
		return nil
	})
	if err == nil && len(s.all) < most {
		s.last = last
	}
	return s.all, err
}

// get returns the set of a space, as the last one used.
func (c *vectorCache) get(of space) *vectorSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &vectorSet{space: of}
	if i := slices.IndexFunc(c.sets, func(s *vectorSet) bool { return s.space == of }); i >= 0 {
		s = c.sets[i]
		c.sets = slices.Delete(c.sets, i, i+1)
	}
	c.sets = append(c.sets, s)
	return s
}

// weigh notes how large a set has become, and drops what was not used for
// longest.
func (c *vectorCache) weigh(s *vectorSet, vectors int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.sets, s)
	if i < 0 { // dropped meanwhile
		return
	}
	c.bytes -= s.bytes
	if s.bytes = vectors * s.space.bytes(); vectors < fewVectors {
		c.sets = slices.Delete(c.sets, i, i+1)
		return
	}
	c.bytes += s.bytes
	for c.bytes > c.maxBytes && len(c.sets) > 1 {
		c.bytes -= c.sets[0].bytes
		c.sets = slices.Delete(c.sets, 0, 1)
	}
}

// forget drops the vectors of a scope.
func (c *vectorCache) forget(scope int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets = slices.DeleteFunc(c.sets, func(s *vectorSet) bool {
		if s.space.scope == scope {
			c.bytes -= s.bytes
		}
		return s.space.scope == scope
	})
}
