package sqlite

import (
	"container/list"
	"time"

	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// foldIdle is how long a fold is kept without a record for it.
const foldIdle = 2 * time.Minute

// held is the fold of a tree, and the part of it that the file already has.
type held struct {
	root    string
	tree    *projector.Tree
	written *written // nil: unknown
	weight  int      // about how many bytes it takes
	dirty   bool
	used    time.Time
	place   *list.Element
}

// written is what the file holds of a tree.
type written struct {
	sessions map[string]writtenSession // by id
	runs     map[runPlace]readmodel.Run
	usage    []readmodel.UsageCell
	parked   int
	messages map[string][]uint64 // sequences of messages, by session
}

// foldCache keeps the most recently used folds.
type foldCache struct {
	folds             map[string]*held
	order             *list.List // most recently used first
	weight            int
	maxFolds, maxSize int
}

// writtenSession is a session's row.
type writtenSession struct {
	doc, parent, agent, user, status, forked, tags, metadata string
	expires                                                  int64
}

func newFoldCache(maxFolds, maxSize int) *foldCache {
	return &foldCache{folds: map[string]*held{}, order: list.New(), maxFolds: maxFolds, maxSize: maxSize}
}

func (c *foldCache) get(root string) *held {
	h := c.folds[root]
	if h != nil {
		c.order.MoveToFront(h.place)
		h.used = time.Now()
	}
	return h
}

// put replaces the fold of a tree.
func (c *foldCache) put(root string, t *projector.Tree) *held {
	c.drop(root)
	h := &held{root: root, tree: t, used: time.Now()}
	h.place = c.order.PushFront(h)
	c.folds[root] = h
	c.grow(h, weightOf(t))
	return h
}

func (c *foldCache) grow(h *held, bytes int) {
	h.weight += bytes
	c.weight += bytes
}

func (c *foldCache) drop(root string) {
	if h := c.folds[root]; h != nil {
		delete(c.folds, root)
		c.order.Remove(h.place)
		c.weight -= h.weight
	}
}

// shrink evicts the least recently used folds whose rows are in the file: those that are
// idle, and those for which there is no room.
func (c *foldCache) shrink(now time.Time) {
	for e := c.order.Back(); e != nil; {
		h := e.Value.(*held)
		if len(c.folds) <= c.maxFolds && c.weight <= c.maxSize && now.Sub(h.used) < foldIdle {
			return
		}
		e = e.Prev()
		if !h.dirty {
			c.drop(h.root)
		}
	}
}

// weightOf is about how many bytes a fold takes.
func weightOf(t *projector.Tree) int {
	const each = 256 // overhead of a text
	n := 4 * each
	for _, s := range t.Sessions() {
		n += 2*each + s.CustomState.Len() + each*(len(s.Runs)+len(s.Checkpoints))
		for i := range s.Messages {
			m := &s.Messages[i]
			n += each + 2*len(m.Content) + len(m.Result) + len(m.Metadata)
		}
	}
	return n
}
