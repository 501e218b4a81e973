// Package inmemory keeps the files of workspaces in the process: for tests,
// and for agents whose files nobody needs afterwards. They end with the
// process, and other nodes don't see them: [workspace.ErrGone].
package inmemory

import (
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
	"github.com/helixd/helixd/eventlog"
)

// ID is the provider's kind.
const ID = "memory"

// defaultMaxBytes bounds a workspace if nobody says.
const defaultMaxBytes = 64 << 20

// Options of a provider.
type Options struct {
	MaxBytes int64 // of the files of a workspace; 0: 64 MiB
}

// Provider implements workspace.Provider.
type Provider struct {
	process  string // tells this process's refs from others'
	maxBytes int64

	mu    sync.Mutex
	trees map[string]map[string]*space // by root and session
}

var _ workspace.Provider = (*Provider)(nil)

// New returns a provider without workspaces.
func New(o *Options) *Provider {
	p := &Provider{process: rand.Text(), maxBytes: defaultMaxBytes, trees: map[string]map[string]*space{}}
	if o != nil && o.MaxBytes > 0 {
		p.maxBytes = o.MaxBytes
	}
	return p
}

// ID implements workspace.Provider.
func (p *Provider) ID() string { return ID }

// Capabilities implements workspace.Provider.
func (p *Provider) Capabilities() []eventlog.WorkspaceCapability {
	return []eventlog.WorkspaceCapability{eventlog.WorkspaceFS}
}

// ref is how a workspace is found again.
type ref struct {
	Process string `json:"process"`
}

// Open implements workspace.Provider.
func (p *Provider) Open(_ context.Context, s workspace.Session) (workspace.Workspace, json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trees[s.Root] == nil {
		p.trees[s.Root] = map[string]*space{}
	}
	if p.trees[s.Root][s.ID] == nil {
		p.trees[s.Root][s.ID] = &space{maxBytes: p.maxBytes, tree: filetree.Tree{}}
	}
	text, err := json.Marshal(ref{Process: p.process})
	return p.trees[s.Root][s.ID], text, err
}

// Resolve implements workspace.Provider.
func (p *Provider) Resolve(_ context.Context, s workspace.Session, text json.RawMessage) (workspace.Workspace, error) {
	var r ref
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("inmemory: ref: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.trees[s.Root][s.ID]
	if r.Process != p.process || found == nil {
		return nil, workspace.ErrGone
	}
	return found, nil
}

// Adopt implements workspace.Provider: there are no snapshots.
func (p *Provider) Adopt(context.Context, workspace.Session, json.RawMessage) (json.RawMessage, error) {
	return nil, fmt.Errorf("inmemory: a snapshot: %w", errors.ErrUnsupported)
}

// Remove implements workspace.Provider.
func (p *Provider) Remove(_ context.Context, root string) (snapshots int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.trees[root] {
		s.remove()
	}
	delete(p.trees, root)
	return 0, nil
}

// Roots implements workspace.Provider.
func (p *Provider) Roots(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.trees)), nil
}
