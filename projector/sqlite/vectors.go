package sqlite

import (
	"context"
	"database/sql"
	"math"
	"sort"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/cache"
)

// maxVectorBytes bounds the memory of the vectors that are kept between queries, of all
// scopes together. Other vectors are read from the file for each query.
const maxVectorBytes = 128 << 20

const (
	// A scope with fewer vectors is not kept: they are read in less than a
	// millisecond.
	fewVectors    = 100
	maxVectorSets = 1024
	// vectorsIdle is how long the vectors of a scope are kept without a query for it.
	vectorsIdle = time.Hour
)

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

// dot keeps four sums, so that an addition does not wait for the one before.
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

// space identifies vectors that can be compared with each other.
type space struct {
	scope      int64
	model      string
	dimensions int
}

// vectorCache keeps the vectors of the scopes that were queried last: reading them from
// the file takes ten times as long as comparing them.
type vectorCache struct {
	maxBytes int
	sets     *cache.Cache[space, vectorSet]
}

func newVectorCache(maxBytes int) *vectorCache {
	return &vectorCache{maxBytes: maxBytes, sets: cache.New[space, vectorSet](maxVectorSets, maxBytes, vectorsIdle)}
}

// vectorSet are the vectors of a space, or the oldest of them.
type vectorSet struct {
	all     []embedding // by id; grows at its end only
	last    int64       // the largest id that was read
	removed int64       // how many were removed before
}

// each calls f with each vector of a space that a transaction has.
func (c *vectorCache) each(ctx context.Context, tx *sql.Tx, of space, f func(embedding)) error {
	var last, removed int64
	err := tx.QueryRowContext(ctx, `SELECT removed, coalesce((SELECT max(id) FROM vectors WHERE scope = m.scope AND model = m.model), 0)
		FROM models m WHERE scope = ? AND model = ?`, of.scope, of.model).Scan(&removed, &last)
	if err != nil {
		return ignoreNoRows(err)
	}
	var kept []embedding
	err = c.sets.Use(ctx, of, func(s *vectorSet) (int, error) {
		err := s.read(ctx, tx, of, last, removed, c.maxBytes/of.bytes(), f)
		if kept = s.all; len(kept) < fewVectors {
			return 0, err
		}
		return len(kept) * of.bytes(), err
	})
	if err != nil {
		return err
	}
	for _, e := range kept[:sort.Search(len(kept), func(i int) bool { return kept[i].id > last })] {
		f(e)
	}
	return nil
}

// forget drops the vectors of a scope.
func (c *vectorCache) forget(scope int64) {
	c.sets.DropIf(func(s space) bool { return s.scope == scope })
}

// bytes is about how much memory a vector takes.
func (s space) bytes() int { return 4*s.dimensions + 64 }

// read brings the set up to the state of a transaction, in which last is the largest id
// and removed is how many vectors were removed. If the set is full, it calls f with each
// vector that it does not keep.
func (s *vectorSet) read(ctx context.Context, tx *sql.Tx, of space, last, removed int64, most int, f func(embedding)) error {
	if removed != s.removed {
		*s = vectorSet{removed: removed}
	}
	if last <= s.last {
		return nil
	}
	const text = "SELECT id, memory, vector FROM vectors WHERE scope = ? AND model = ? AND length(vector) = ? AND id > ? ORDER BY id"
	err := each(ctx, tx, text, []any{of.scope, of.model, 4 * of.dimensions, s.last}, func(row *sql.Rows) error {
		var e embedding
		var raw sql.RawBytes
		if err := row.Scan(&e.id, &e.memory, &raw); err != nil {
			return err
		}
		v, err := fact.VectorOf(raw)
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
	return err
}
