// Package inmemory keeps the files of workspaces in the process: for tests,
// and for agents whose files are not needed afterwards. They end with the
// process, or when others need the room, and other nodes don't see them:
// [workspace.ErrGone].
package inmemory

import (
	"cmp"
	"container/list"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
	"github.com/helixd/helixd/eventlog/fact"
)

// ID is the provider's kind.
const ID = "memory"

// Default limits.
const (
	MaxBytes = 64 << 20  // of the files of a workspace
	MaxTotal = 512 << 20 // of all workspaces; a file, and a workspace, counts 4 KiB or more
)

// Options of a provider. 0 means the default limit.
type Options struct {
	MaxBytes int64
	MaxTotal int64
}

// Provider implements workspace.Provider. When there is no room for more, the
// workspace is gone that was closed longest ago.
type Provider struct {
	process            string // distinguishes this process's refs from others'
	maxBytes, maxTotal int64

	mu     sync.Mutex
	spaces map[workspace.Session]*space
	weight int64      // of all
	idle   *list.List // of *space: those that are not open, by the time when they were closed
}

var _ workspace.Provider = (*Provider)(nil)

// New returns a provider without workspaces.
func New(o *Options) *Provider {
	if o == nil {
		o = &Options{}
	}
	return &Provider{
		process: rand.Text(), maxBytes: cmp.Or(o.MaxBytes, MaxBytes), maxTotal: cmp.Or(o.MaxTotal, MaxTotal),
		spaces: map[workspace.Session]*space{}, idle: list.New(),
	}
}

// ID implements workspace.Provider.
func (p *Provider) ID() string { return ID }

// Capabilities implements workspace.Provider.
func (p *Provider) Capabilities() []fact.WorkspaceCapability {
	return []fact.WorkspaceCapability{fact.WorkspaceFS}
}

// ref is how a workspace is found again.
type ref struct {
	Process string `json:"process"`
}

// Open implements workspace.Provider.
func (p *Provider) Open(_ context.Context, s workspace.Session) (workspace.Workspace, json.RawMessage, error) {
	text, err := json.Marshal(ref{Process: p.process})
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.spaces[s]
	if found == nil {
		found = &space{p: p, session: s, tree: filetree.Tree{}}
		if err := p.weigh(found, weight(found.tree)); err != nil {
			return nil, nil, err
		}
		p.spaces[s] = found
	}
	return p.hold(found), text, nil
}

// Resolve implements workspace.Provider.
func (p *Provider) Resolve(_ context.Context, s workspace.Session, text json.RawMessage) (workspace.Workspace, error) {
	var r ref
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("inmemory: ref: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.spaces[s]
	if r.Process != p.process || found == nil {
		return nil, workspace.ErrGone
	}
	return p.hold(found), nil
}

// hold opens a workspace. The caller has the lock.
func (p *Provider) hold(s *space) *held {
	if s.idle != nil {
		p.idle.Remove(s.idle)
		s.idle = nil
	}
	s.holders++
	return &held{space: s}
}

// weigh has a workspace count that many bytes from now on, for which others may
// have to go. The caller has the lock. Errors: workspace.ErrQuota,
// workspace.ErrGone.
func (p *Provider) weigh(s *space, bytes int64) error {
	for more := bytes - s.weight; more > 0 && p.weight+more > p.maxTotal && !s.gone.Load(); {
		oldest := p.idle.Front()
		if oldest == nil {
			return fmt.Errorf("%w: those in use here have %d bytes, %d are allowed", workspace.ErrQuota, p.weight, p.maxTotal)
		}
		p.drop(oldest.Value.(*space))
	}
	if s.gone.Load() {
		return workspace.ErrGone
	}
	p.weight += bytes - s.weight
	s.weight = bytes
	return nil
}

// drop forgets a workspace. The caller has the lock.
func (p *Provider) drop(s *space) {
	if s.idle != nil {
		p.idle.Remove(s.idle)
		s.idle = nil
	}
	delete(p.spaces, s.session)
	s.gone.Store(true)
	p.weight -= s.weight
}

// Adopt implements workspace.Provider: there are no snapshots.
func (p *Provider) Adopt(context.Context, workspace.Session, json.RawMessage) (json.RawMessage, error) {
	return nil, fmt.Errorf("inmemory: a snapshot: %w", errors.ErrUnsupported)
}

// Remove implements workspace.Provider.
func (p *Provider) Remove(_ context.Context, root string) (snapshots int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for of, s := range p.spaces {
		if of.Root == root {
			p.drop(s)
		}
	}
	return 0, nil
}

// Roots implements workspace.Provider.
func (p *Provider) Roots(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	roots := map[string]bool{}
	for of := range p.spaces {
		roots[of.Root] = true
	}
	return slices.Sorted(maps.Keys(roots)), nil
}
