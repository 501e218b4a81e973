// Package cache keeps the values that were used last, within bounds.
package cache

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Cache keeps a value for each of the keys that were used last. It is bounded in
// entries and in bytes, but for the key that was used last, and evicts what is
// idle.
type Cache[K comparable, V any] struct {
	most, mostBytes int
	idle            time.Duration

	mu      sync.Mutex
	entries map[K]*entry[K, V]
	order   list.List // of *entry, the last used first
	size    int
	timer   *time.Timer // runs while there are entries
}

type entry[K comparable, V any] struct {
	key  K
	at   *list.Element // nil: it was evicted or dropped
	size int           // as it is counted
	used time.Time

	lock  chan struct{} // one may use the value
	value V
}

// New returns a cache of at most so many entries and bytes. An entry that nobody
// uses is evicted after idle.
func New[K comparable, V any](entries, bytes int, idle time.Duration) *Cache[K, V] {
	return &Cache[K, V]{most: entries, mostBytes: bytes, idle: idle, entries: map[K]*entry[K, V]{}}
}

// Use calls f with the key's value, the zero value at first, and nobody else
// meanwhile. f returns how many bytes the value has then; with 0 it is not kept.
// The error is f's, or the context's.
func (c *Cache[K, V]) Use(ctx context.Context, key K, f func(*V) (size int, err error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := c.pin(key)
	select {
	case e.lock <- struct{}{}: // first, since select chooses at random, and an entry that f was not called for would stay
	default:
		select {
		case e.lock <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	size := 0
	defer func() {
		<-e.lock
		c.unpin(e, size)
	}()
	size, err := f(&e.value)
	return err
}

// Holds reports whether there is a value of the key.
func (c *Cache[K, V]) Holds(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[key] != nil
}

func (c *Cache[K, V]) pin(key K) *entry[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		e = &entry[K, V]{key: key, lock: make(chan struct{}, 1)}
		c.entries[key], e.at = e, c.order.PushFront(e)
		if c.timer == nil {
			c.timer = time.AfterFunc(c.idle, c.evictIdle)
		}
	}
	e.used = time.Now()
	c.order.MoveToFront(e.at)
	return e
}

// unpin counts a value that was used and makes room.
func (c *Cache[K, V]) unpin(e *entry[K, V], size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.at == nil {
		return
	}
	c.size += size - e.size
	e.size = size
	if size == 0 {
		c.remove(e)
	}
	for c.order.Len() > 1 && (c.order.Len() > c.most || c.size > c.mostBytes) {
		c.remove(c.order.Back().Value.(*entry[K, V]))
	}
}

// remove forgets an entry; a caller that uses its value now continues with it alone.
func (c *Cache[K, V]) remove(e *entry[K, V]) {
	c.order.Remove(e.at)
	delete(c.entries, e.key)
	c.size -= e.size
	e.at = nil
}

// Drop removes a key.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		c.remove(e)
	}
}

// DropIf removes the keys for which drop reports true.
func (c *Cache[K, V]) DropIf(drop func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if drop(key) {
			c.remove(e)
		}
	}
}

func (c *Cache[K, V]) evictIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := c.order.Back(); at != nil; at = c.order.Back() {
		e := at.Value.(*entry[K, V])
		if rest := c.idle - time.Since(e.used); rest > 0 {
			c.timer.Reset(rest)
			return
		}
		c.remove(e)
	}
	c.timer = nil
}
