package sqlite

import (
	"container/list"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
)

const (
	// maxCodeBytes is how much memory the codes of all scopes may take, and
	// those of one. Of a scope with more, the newest memories are found by
	// their meaning.
	maxCodeBytes = 128 << 20
	// Codes are read anew when one in staleShare is of a vector that is gone.
	staleShare = 8
	staleLeast = 64
)

// codeCache keeps the codes of the large scopes that were asked for last: to
// compare a question with 100,000 of them is quick, to read them is not. It
// only tells where to look: what it names may be gone from the file.
type codeCache struct {
	maxBytes int
	mu       sync.Mutex
	sets     map[codeKey]*codeSet
	order    *list.List // the last used is first
	bytes    int
}

// codeKey names codes that can be compared.
type codeKey struct {
	scope int64
	model string
}

// codeSet are the codes of a scope.
type codeSet struct {
	key   codeKey
	place *list.Element // with bytes, of the cache
	bytes int

	mu      sync.Mutex
	vectors []int64 // their numbers; grows at its end only
	codes   []code  // in the same order
	last    int64   // the largest number that was looked at
	removed int64   // how many were removed before
	loaded  bool
}

func newCodeCache(maxBytes int) *codeCache {
	return &codeCache{maxBytes: maxBytes, sets: map[codeKey]*codeSet{}, order: list.New()}
}

// near returns the numbers of the most vectors of a scope whose codes differ
// least, but for some, and maybe of some that are gone.
func (c *codeCache) near(
	ctx context.Context, tx *sql.Tx, scope int64, model string, to *question, most int, without map[int64]bool,
) (near []int64, err error) {
	var there, removed int64
	err = tx.QueryRowContext(ctx, "SELECT vectors, removed FROM models WHERE scope = ? AND model = ?", scope, model).Scan(&there, &removed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if there <= int64(most+len(without)) { // all of them
		err := each(ctx, tx, "SELECT codes FROM codes WHERE scope = ? AND model = ?", []any{scope, model}, func(row *sql.Rows) error {
			var block sql.RawBytes
			err := row.Scan(&block)
			for vector := range blockEntries(block) {
				if !without[vector] {
					near = append(near, vector)
				}
			}
			return err
		})
		return near, err
	}
	s := c.get(codeKey{scope, model})
	vectors, codes, stale, err := s.read(ctx, tx, there, removed, c.maxBytes)
	if err != nil {
		return nil, err
	}
	c.weigh(s, codeBytes*cap(codes))
	places := make(map[int]bool, len(without))
	for vector := range without {
		if place, ok := slices.BinarySearch(vectors, vector); ok {
			places[place] = true
		}
	}
	for _, place := range to.nearest(codes, most+stale, places) {
		near = append(near, vectors[place])
	}
	return near, nil
}

// get returns the set of a key, as the last one used.
func (c *codeCache) get(key codeKey) *codeSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sets[key]
	if s == nil {
		s = &codeSet{key: key}
		s.place = c.order.PushFront(s)
		c.sets[key] = s
	}
	c.order.MoveToFront(s.place)
	return s
}

// weigh notes how large a set has become, and drops what was not used for
// longest.
func (c *codeCache) weigh(s *codeSet, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sets[s.key] != s { // forgotten meanwhile
		return
	}
	c.bytes += bytes - s.bytes
	s.bytes = bytes
	for c.bytes > c.maxBytes && c.order.Len() > 1 {
		c.drop(c.order.Back().Value.(*codeSet))
	}
}

// drop removes a set; the lock is held.
func (c *codeCache) drop(s *codeSet) {
	delete(c.sets, s.key)
	c.order.Remove(s.place)
	c.bytes -= s.bytes
}

// forget drops the codes of a scope.
func (c *codeCache) forget(scope int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, s := range c.sets {
		if key.scope == scope {
			c.drop(s)
		}
	}
}

// read brings the set to where a transaction is, in which so many vectors are
// there and so many were removed, and returns it: later reads only add behind
// it. Stale is how many of it may be gone at most.
func (s *codeSet) read(
	ctx context.Context, tx *sql.Tx, there, removed int64, maxBytes int,
) (vectors []int64, codes []code, stale int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := maxBytes / codeBytes
	gone := removed - s.removed
	if !s.loaded || gone > max(staleLeast, int64(len(s.vectors))/staleShare) || len(s.vectors) > most {
		room := min(int(there)+staleLeast, most)
		s.vectors, s.codes = make([]int64, 0, room), make([]code, 0, room)
		s.last, s.removed, gone, s.loaded = 0, removed, 0, false
		if there > int64(most) { // the newest half, so that there is room for what comes
			const text = `SELECT ? * (block + 1) - 1 FROM (
					SELECT block, sum(length(codes)) OVER (ORDER BY block DESC) AS bytes FROM codes WHERE scope = ? AND model = ?
				) WHERE bytes > ? ORDER BY block DESC LIMIT 1`
			err := tx.QueryRowContext(ctx, text, blockVectors, s.key.scope, s.key.model, maxBytes/2).Scan(&s.last)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, nil, 0, err
			}
		}
	}
	const text = "SELECT codes FROM codes WHERE scope = ? AND model = ? AND block >= ? ORDER BY block"
	err = each(ctx, tx, text, []any{s.key.scope, s.key.model, s.last / blockVectors}, s.add)
	s.loaded = s.loaded || err == nil
	return s.vectors, s.codes, int(max(gone, 0)), err
}

// add takes over what is new in a block.
func (s *codeSet) add(row *sql.Rows) error {
	var block sql.RawBytes
	if err := row.Scan(&block); err != nil {
		return err
	}
	for vector, entry := range blockEntries(block) {
		if vector > s.last {
			s.last = vector
			s.vectors, s.codes = append(s.vectors, vector), append(s.codes, entryCode(entry))
		}
	}
	return nil
}
