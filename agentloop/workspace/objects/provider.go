package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
	"github.com/helixd/helixd/eventlog/fact"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// ID is the provider's kind.
	ID = "objects"
	// Stream is the name of its stream.
	Stream = "HELIX_WORKSPACES"

	defaultMaxBytes = 1 << 30
	defaultGrace    = time.Hour
)

// Options of a provider.
type Options struct {
	Replicas int   // of the stream; 0: 1
	Memory   bool  // keeps it in the servers' memory, as the log's option
	MaxBytes int64 // of the files of a workspace; 0: 1 GiB
	// Grace is how long what nothing refers to is kept, by the server's clock. It is longer
	// than any change takes. 0: an hour.
	Grace time.Duration
}

// Provider implements workspace.Provider.
type Provider struct {
	nc     *nats.Conn
	js     natsjs.JetStream
	stream natsjs.Stream
	opts   Options

	mu     sync.Mutex
	trees  map[string]*kept
	clean  map[string]uint64 // the states of trees in which there was no garbage
	seed   maphash.Seed      // of states
	listed atomic.Bool       // all trees were, once
}

var (
	_ workspace.Provider  = (*Provider)(nil)
	_ workspace.Collector = (*Provider)(nil)
)

// Exists reports whether there is a stream of workspaces. It asks once.
func Exists(ctx context.Context, nc *nats.Conn) (bool, error) {
	js, err := natsjs.New(nc)
	if err == nil {
		_, err = js.Stream(ctx, Stream)
	}
	switch {
	case errors.Is(err, natsjs.ErrStreamNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("objects: stream %s: %w", Stream, err)
	}
	return true, nil
}

func newProvider(nc *nats.Conn) *Provider {
	return &Provider{nc: nc, trees: map[string]*kept{}, clean: map[string]uint64{}, seed: maphash.MakeSeed()}
}

// Open finds the stream, or makes it. The connection stays the caller's.
func Open(ctx context.Context, nc *nats.Conn, o *Options) (*Provider, error) {
	p := newProvider(nc)
	if o != nil {
		p.opts = *o
	}
	p.opts.MaxBytes = cmp.Or(p.opts.MaxBytes, defaultMaxBytes)
	p.opts.Grace = cmp.Or(p.opts.Grace, defaultGrace)
	p.opts.Replicas = max(p.opts.Replicas, 1)
	var err error
	if p.js, err = newJetStream(nc, patience); err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	config := natsjs.StreamConfig{
		Name: Stream, Description: "helixd: the files of workspaces", Subjects: []string{subjects + ">", goneSubjects + "*"},
		Storage: natsjs.FileStorage, Discard: natsjs.DiscardNew, Replicas: p.opts.Replicas,
	}
	if p.opts.Memory {
		config.Storage = natsjs.MemoryStorage
	}
	if p.stream, err = logjs.FindOrCreate(ctx, nc, p.js, config); err != nil {
		return nil, fmt.Errorf("objects: stream %s: %w", Stream, err)
	}
	return p, checkStream(p.stream.CachedInfo().Config, p.opts.Replicas)
}

// checkStream refuses a stream that loses messages, whose reads may be answered
// by a replica that lags, or that is less durable than the log.
func checkStream(c natsjs.StreamConfig, replicas int) error {
	switch {
	case c.Replicas != replicas:
		return fmt.Errorf("objects: stream %s: num_replicas is %d, must be %d: nats stream edit %s --replicas %d", Stream, c.Replicas, replicas, Stream, replicas)
	case c.AllowDirect:
		return fmt.Errorf("objects: stream %s: allow_direct is true, must be false", Stream)
	case c.MaxAge > 0, c.MaxMsgsPerSubject > 0, c.Discard != natsjs.DiscardNew:
		return fmt.Errorf("objects: stream %s: its limits would delete files", Stream)
	}
	return nil
}

// ID implements workspace.Provider.
func (p *Provider) ID() string { return ID }

// Capabilities implements workspace.Provider.
func (p *Provider) Capabilities() []fact.WorkspaceCapability {
	return []fact.WorkspaceCapability{fact.WorkspaceFS, fact.WorkspaceSnapshot}
}

// ref is how a workspace is found again: its place follows from the session.
type ref struct {
	Stream string `json:"stream"`
}

// Open implements workspace.Provider.
func (p *Provider) Open(ctx context.Context, s workspace.Session) (workspace.Workspace, json.RawMessage, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	w := p.space(s)
	_, err := w.head(ctx)
	if errors.Is(err, workspace.ErrGone) {
		if err = w.begin(ctx); errors.Is(err, errChanged) { // another node has, or removes it
			_, err = w.head(ctx)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("objects: open: %w", err)
	}
	text, err := json.Marshal(ref{Stream: Stream})
	return w, text, err
}

// begin makes the workspace, without files. Error: errChanged, if it is there.
func (w *space) begin(ctx context.Context) error {
	empty, err := w.putNothing(ctx)
	if err != nil {
		return err
	}
	return w.p.putHead(ctx, w.session, 0, empty)
}

// putNothing stores the manifest of a workspace without files.
func (w *space) putNothing(ctx context.Context) (content, error) {
	if err := w.p.noteTree(ctx, w.session.Root); err != nil {
		return content{}, err
	}
	return w.p.putTree(ctx, w.session.Root, filetree.Tree{})
}

// Resolve implements workspace.Provider.
func (p *Provider) Resolve(ctx context.Context, s workspace.Session, text json.RawMessage) (workspace.Workspace, error) {
	var r ref
	if err := json.Unmarshal(text, &r); err != nil || r.Stream != Stream {
		return nil, fmt.Errorf("objects: this is not a ref: %.100s", text)
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	w := p.space(s)
	if _, err := w.head(ctx); err != nil {
		return nil, fmt.Errorf("objects: resolve: %w", err)
	}
	return w, nil
}

// Remove implements workspace.Provider.
func (p *Provider) Remove(ctx context.Context, root string) (snapshots int, err error) {
	if err := p.mark(ctx, root); err != nil {
		return 0, fmt.Errorf("objects: remove: %w", err)
	}
	if err := p.fence(ctx, root); err != nil {
		return 0, fmt.Errorf("objects: remove: %w", err)
	}
	for _, kind := range []string{headKind + ">", snapKind + ">", partKind + ">", ">"} { // the last one: all that is left
		n, err := p.erase(ctx, prefix(root)+kind, 0, time.Time{})
		if strings.HasPrefix(kind, snapKind) {
			snapshots = n
		}
		if err != nil {
			return snapshots, fmt.Errorf("objects: remove: %w", err)
		}
	}
	return snapshots, p.settled(ctx, root)
}

// fence puts an empty head before all heads of a tree: who still writes finds
// that the workspace is gone. It is erased after them.
func (p *Provider) fence(ctx context.Context, root string) error {
	heads, err := p.subjects(ctx, prefix(root)+headKind+">")
	if err != nil {
		return err
	}
	for subject := range heads {
		if _, err := p.publish(ctx, &nats.Msg{Subject: subject}); err != nil {
			return err
		}
	}
	return nil
}

// mark remembers that a tree is being removed, where its bytes may outlive it.
func (p *Provider) mark(ctx context.Context, root string) error {
	if p.opts.Replicas == 1 {
		return nil
	}
	_, err := p.next(ctx, prefix(root)+">", 1)
	if errors.Is(err, natsjs.ErrMsgNotFound) {
		return nil
	}
	if err == nil {
		_, err = p.publish(ctx, &nats.Msg{Subject: goneSubjects + layout.Token(root)})
	}
	return err
}

// settled is workspace.ErrPending if bytes of a removed tree may be left.
func (p *Provider) settled(ctx context.Context, root string) error {
	_, err := p.last(ctx, goneSubjects+layout.Token(root))
	switch {
	case errors.Is(err, natsjs.ErrMsgNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("objects: remove: %w", err)
	}
	return fmt.Errorf("%w: the Raft logs of the stream %s keep bytes until the servers compact them; search the servers' files for %s",
		workspace.ErrPending, Stream, prefix(root))
}

// noteTree makes sure that Roots finds a tree: it is called before the first content of the
// tree is stored.
func (p *Provider) noteTree(ctx context.Context, root string) error {
	_, err := p.publish(ctx, &nats.Msg{Subject: prefix(root) + treeKind})
	return err
}

// Roots implements workspace.Provider. Until it has succeeded once it reads all messages:
// a killed process may have stored contents without a note.
func (p *Provider) Roots(ctx context.Context) ([]string, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	filters := []string{subjects + "*." + treeKind}
	if !p.listed.Load() {
		filters = append(filters, subjects+"*."+headKind+"*", subjects+"*."+snapKind+"*", subjects+"*."+partKind+"*.0")
	}
	roots, err := p.rootsOf(ctx, filters...)
	if err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	p.listed.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.clean, func(root string, _ uint64) bool { return !roots[root] })
	return slices.Sorted(maps.Keys(roots)), nil
}

// rootsOf returns the trees that have messages on some subjects.
func (p *Provider) rootsOf(ctx context.Context, filters ...string) (map[string]bool, error) {
	roots := map[string]bool{}
	for _, filter := range filters {
		found, err := p.subjects(ctx, filter)
		if err != nil {
			return nil, err
		}
		for subject := range found {
			token, _, _ := strings.Cut(strings.TrimPrefix(subject, subjects), ".")
			if root, ok := layout.Untoken(token); ok {
				roots[root] = true
			}
		}
	}
	return roots, nil
}
