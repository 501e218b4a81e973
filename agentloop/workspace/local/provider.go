package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/fact"
)

// ID is the provider's kind.
const ID = "local"

const (
	defaultTimeout      = time.Minute
	defaultMaxProcesses = 64
	defaultMaxBytes     = 1 << 30
	defaultMaxMemory    = 2 << 30
	// probed is after how long a folder in which something was tried is what a
	// process that was killed has left.
	probed = 10 * time.Minute
)

// Options of a provider.
type Options struct {
	Timeout      time.Duration // of a command, at most; 0: a minute
	MaxProcesses int           // of a command at a time; 0: 64
	MaxBytes     int64         // of the files of a workspace; 0: 1 GiB
	MaxMemory    int64         // bytes of a command's processes together; 0: 2 GiB
	// RunAs is the user, by name or number, as whom commands run; empty: 65534
	// if this process is root and that user exists, otherwise its own user. Only root can choose; root
	// itself is refused.
	RunAs string
	// Unconfined has commands run also where they can't be isolated and are of
	// this process's own user: nothing keeps them from what that may read, write
	// and end, this process included.
	Unconfined bool
	// Hide are folders and files that commands don't see: the daemon's data and
	// secrets; see also [Provider.AddHidden]. The provider's own folder is always
	// hidden. Needs Isolated.
	Hide []string
}

// Provider implements workspace.Provider.
type Provider struct {
	dir      string // without symbolic links
	host     string
	opts     Options
	user     user
	escapes  error // what os.Root says of a name that leads out
	isolated bool
	shell    error // why there is none

	unisolated error // why commands are not isolated
	unfiltered error // why their system calls are not filtered

	hidden atomic.Pointer[[]string] // absolute; the slice is not changed

	mu     sync.Mutex
	spaces map[workspace.Session]*space
	going  map[string]chan struct{} // trees that may not be used until the channel is closed

	keptMu sync.Mutex
	kept   map[string]int64 // bytes that snapshots of trees keep, where they are counted
}

var _ workspace.Provider = (*Provider)(nil)

// New returns the workspaces below a folder, which it makes. If commands can't
// be run here, the shell isn't among the capabilities; ShellProblem says why.
func New(dir string, o *Options) (*Provider, error) {
	p := &Provider{spaces: map[workspace.Session]*space{}, going: map[string]chan struct{}{}, kept: map[string]int64{}}
	if o != nil {
		p.opts = *o
	}
	if p.opts.Timeout <= 0 {
		p.opts.Timeout = defaultTimeout
	}
	if p.opts.MaxProcesses <= 0 {
		p.opts.MaxProcesses = defaultMaxProcesses
	}
	if p.opts.MaxBytes <= 0 {
		p.opts.MaxBytes = defaultMaxBytes
	}
	if p.opts.MaxMemory <= 0 {
		p.opts.MaxMemory = defaultMaxMemory
	}
	var err error
	if p.user, err = userOf(p.opts.RunAs); err != nil {
		return nil, fmt.Errorf("local workspaces: runAs: %w", err)
	}
	p.hidden.Store(new([]string))
	if err := p.AddHidden(p.opts.Hide); err != nil {
		return nil, err
	}
	if err := p.open(dir); err != nil {
		return nil, fmt.Errorf("local workspaces: %w", err)
	}
	if err := p.tryOwner(); errors.Is(err, fs.ErrPermission) && p.opts.RunAs == "" {
		p.user = self() // root without its rights
	} else if err != nil {
		return nil, fmt.Errorf("local workspaces: %w", err)
	}
	p.isolated, p.shell = p.probe()
	return p, nil
}

// AddHidden hides more folders and files, as [Options].Hide does, from commands that
// begin from now on. It must not be called twice at once. Errors: there is no working
// directory that a relative name begins at; then nothing has changed.
func (p *Provider) AddHidden(names []string) error {
	hidden := slices.Clone(*p.hidden.Load())
	for _, name := range names {
		name, err := filepath.Abs(name) // commands begin elsewhere
		if err != nil {
			return fmt.Errorf("local workspaces: hide: %w", err)
		}
		if !slices.Contains(hidden, name) {
			hidden = append(hidden, name)
		}
	}
	p.hidden.Store(&hidden)
	return nil
}

// open finds the folder, and what names this machine.
func (p *Provider) open(dir string) (err error) {
	if err := os.MkdirAll(filepath.Join(dir, "trees"), 0o711); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if p.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	tried, _ := fs.Glob(os.DirFS(p.dir), ".probe-*")
	for _, name := range tried {
		name = filepath.Join(p.dir, name)
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > probed {
			_ = os.RemoveAll(name) // leftovers do no harm
		}
	}
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.Lstat("..")
	if p.escapes = errors.Unwrap(err); p.escapes == nil {
		return errors.New("os.Root lets .. pass")
	}
	name := filepath.Join(p.dir, "host")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(name, []byte(rand.Text())); err == nil || errors.Is(err, fs.ErrExist) {
			text, err = os.ReadFile(name)
		}
	}
	p.host = string(text)
	return err
}

// tryOwner says why files can't be the user's as whom commands run.
func (p *Provider) tryOwner() error {
	dir, err := os.MkdirTemp(p.dir, ".probe-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := p.user.ownFolder(dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
}

// create makes a file that is there whole or not at all. Error: fs.ErrExist.
func create(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is linked, or of no use
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), name); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(name))
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ID implements workspace.Provider.
func (p *Provider) ID() string { return ID }

// Capabilities implements workspace.Provider.
func (p *Provider) Capabilities() []fact.WorkspaceCapability {
	all := []fact.WorkspaceCapability{fact.WorkspaceFS, fact.WorkspaceSnapshot}
	if p.shell == nil {
		all = append(all, fact.WorkspaceShell)
	}
	return all
}

// ShellProblem says why no commands can be run here; nil: they can.
func (p *Provider) ShellProblem() error { return p.shell }

// Isolated reports whether commands run in their own namespaces.
func (p *Provider) Isolated() bool { return p.isolated }

// Gaps returns what commands are not kept from here that they would be elsewhere,
// a sentence each, with the reason; none if there is no shell.
func (p *Provider) Gaps() (all []string) {
	if p.shell != nil {
		return nil
	}
	if !p.isolated {
		all = append(all, fmt.Sprintf("commands see the machine's files, devices and processes, and other workspaces: %v", p.unisolated))
	}
	if p.unfiltered != nil {
		all = append(all, fmt.Sprintf("commands may make every system call: %v", p.unfiltered))
	}
	if !p.isolated && p.unfiltered != nil {
		all = append(all, "commands have the machine's network, whatever network says")
	}
	return all
}

// ref is how a workspace is found again: where in the folder follows from the
// session.
type ref struct {
	Host string `json:"host"`
}

func encoded(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

func (p *Provider) tree(root string) string { return filepath.Join(p.dir, "trees", encoded(root)) }

func (p *Provider) files(s workspace.Session) string {
	return filepath.Join(p.tree(s.Root), "files", encoded(s.ID))
}

// enter takes the lock when each of the trees may be used.
func (p *Provider) enter(ctx context.Context, trees ...string) error {
	for {
		p.mu.Lock()
		i := slices.IndexFunc(trees, func(t string) bool { return p.going[t] != nil })
		if i < 0 {
			return nil
		}
		going := p.going[trees[i]]
		p.mu.Unlock()
		select {
		case <-going:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave gives the lock back when f has done something to trees, for which it
// was not held: others can be used meanwhile.
func (p *Provider) leave(trees []string, f func() error) error {
	done := make(chan struct{})
	for _, t := range trees {
		p.going[t] = done
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, t := range trees {
			delete(p.going, t)
		}
		close(done)
	}()
	return f()
}

// makeTree makes a tree's folder, and records its session before anything else.
func (p *Provider) makeTree(root string) error {
	tree := p.tree(root)
	if err := os.MkdirAll(tree, 0o711); err != nil {
		return err
	}
	if err := create(filepath.Join(tree, "root"), []byte(root)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for name, mode := range map[string]fs.FileMode{"files": 0o711, "contents": 0o700, "snapshots": 0o700} {
		if err := os.MkdirAll(filepath.Join(tree, name), mode); err != nil {
			return err
		}
	}
	return errors.Join(syncFolder(tree), syncFolder(filepath.Dir(tree)))
}

// Open implements workspace.Provider.
func (p *Provider) Open(ctx context.Context, s workspace.Session) (workspace.Workspace, json.RawMessage, error) {
	w, err := p.hold(ctx, s, func() error {
		if err := p.makeTree(s.Root); err != nil {
			return err
		}
		return p.makeFiles(s)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("local workspace: open: %w", err)
	}
	text, err := json.Marshal(ref{Host: p.host})
	return w, text, err
}

// makeFiles makes a session's folder, the commands' user its owner.
func (p *Provider) makeFiles(s workspace.Session) error {
	name := p.files(s)
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	fresh, err := os.MkdirTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	if err = p.user.ownFolder(fresh); err == nil {
		err = os.Rename(fresh, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return syncFolder(filepath.Dir(name))
}

// Resolve implements workspace.Provider.
func (p *Provider) Resolve(ctx context.Context, s workspace.Session, text json.RawMessage) (workspace.Workspace, error) {
	var r ref
	if err := json.Unmarshal(text, &r); err != nil || r.Host == "" {
		return nil, fmt.Errorf("local workspace: this is not a ref: %.100s", text)
	}
	if r.Host != p.host {
		return nil, workspace.ErrElsewhere
	}
	w, err := p.hold(ctx, s, func() error {
		if _, err := os.Lstat(p.files(s)); errors.Is(err, fs.ErrNotExist) {
			return workspace.ErrGone
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("local workspace: resolve: %w", err)
	}
	return w, nil
}

// Remove implements workspace.Provider. Commands that run there are ended.
func (p *Provider) Remove(ctx context.Context, root string) (snapshots int, err error) {
	tree := encoded(root)
	if err := p.enter(ctx, tree); err != nil {
		return 0, err
	}
	var held []*space
	for s, h := range p.spaces {
		if s.Root == root {
			h.end(workspace.ErrGone)
			held = append(held, h)
			delete(p.spaces, s)
		}
	}
	err = p.leave([]string{tree}, func() (err error) {
		for _, h := range held {
			h.remove()
		}
		snapshots, err = p.removeTree(ctx, tree)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("local workspace: remove: %w", err)
	}
	return snapshots, nil
}

// removeTree removes a tree's folder, and returns how many snapshots it had.
func (p *Provider) removeTree(ctx context.Context, tree string) (snapshots int, err error) {
	p.recountKept(tree)
	trees, err := os.OpenRoot(filepath.Join(p.dir, "trees"))
	if err != nil {
		return 0, err
	}
	defer trees.Close()
	taken, err := fs.ReadDir(trees.FS(), tree+"/snapshots")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, name := range []string{"files", "snapshots", "contents", ""} { // "root" with the last
		if err := removeAll(ctx, trees, filepath.Join(tree, name)); err != nil {
			return 0, err
		}
	}
	return len(taken), syncFolder(trees.Name())
}

// Roots implements workspace.Provider.
func (p *Provider) Roots(context.Context) ([]string, error) {
	trees, err := os.ReadDir(filepath.Join(p.dir, "trees"))
	if err != nil {
		return nil, fmt.Errorf("local workspaces: %w", err)
	}
	var roots []string
	for _, t := range trees {
		if !t.IsDir() { // not a workspace
			continue
		}
		root, err := os.ReadFile(filepath.Join(p.dir, "trees", t.Name(), "root"))
		if errors.Is(err, fs.ErrNotExist) { // it is made or removed just now
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("local workspaces: %w", err)
		}
		roots = append(roots, string(root))
	}
	slices.SortFunc(roots, strings.Compare)
	return roots, nil
}

// ownFolder makes the user the owner of a folder.
func (u user) ownFolder(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(u.own(f), f.Close())
}
