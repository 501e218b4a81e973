package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// snapshot is what the provider says of one.
type snapshot struct {
	Host     string `json:"host"`
	Tree     string `json:"tree"`     // the folder's name
	Snapshot string `json:"snapshot"` // SHA-256 of what is in its file
}

func (p *Provider) parseSnapshot(text json.RawMessage) (s snapshot, err error) {
	err = json.Unmarshal(text, &s)
	if err != nil || s.Host == "" || !isHex(s.Tree, 16) || !isHex(s.Snapshot, sha256.Size) {
		return s, fmt.Errorf("local workspace: this is not a snapshot: %.100s", text)
	}
	if s.Host != p.host {
		return s, workspace.ErrElsewhere
	}
	return s, nil
}

func isHex(s string, bytes int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == bytes
}

func (p *Provider) folderOf(s snapshot) string { return filepath.Join(p.dir, "trees", s.Tree) }

func (p *Provider) contents(tree string) string {
	return filepath.Join(p.dir, "trees", tree, "contents")
}

// manifest is the file of a snapshot.
func (p *Provider) manifest(s snapshot) string {
	return filepath.Join(p.folderOf(s), "snapshots", s.Snapshot)
}

// load returns what a snapshot is of. Error: workspace.ErrGone.
func (p *Provider) load(s snapshot) (t filetree.Tree, text []byte, err error) {
	text, err = os.ReadFile(p.manifest(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("snapshot: %w", workspace.ErrGone)
	}
	if err != nil {
		return nil, nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != s.Snapshot {
		return nil, nil, errors.New("the snapshot is damaged")
	}
	return t, text, json.Unmarshal(text, &t)
}

// Adopt implements workspace.Provider. Contents are linked, where that can be:
// they never change.
func (p *Provider) Adopt(ctx context.Context, to workspace.Session, text json.RawMessage) (json.RawMessage, error) {
	from, err := p.parseSnapshot(text)
	if err != nil {
		return nil, err
	}
	own := from
	own.Tree = encoded(to.Root)
	trees := []string{from.Tree, own.Tree}
	if err := p.enter(ctx, trees...); err != nil {
		return nil, err
	}
	err = p.leave(trees, func() error { return p.adopt(ctx, from, own, to.Root) })
	if err != nil {
		return nil, fmt.Errorf("local workspace: adopt: %w", err)
	}
	return json.Marshal(own)
}

// keepCopy keeps a file in a tree.
func (p *Provider) keepCopy(ctx context.Context, name, tree string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, _, err = p.keep(ctx, f, tree)
	return err
}

var link = os.Link // tests change it

func (p *Provider) adopt(ctx context.Context, from, own snapshot, root string) error {
	if _, _, err := p.load(own); !errors.Is(err, workspace.ErrGone) {
		return err // asked again
	}
	t, text, err := p.load(from)
	if err != nil {
		return err
	}
	if err := p.makeTree(root); err != nil {
		return err
	}
	source, target := p.contents(from.Tree), p.contents(own.Tree)
	defer p.recountKept(own.Tree)
	for _, node := range t {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if node.Hash == "" {
			continue
		}
		err := link(filepath.Join(source, node.Hash), filepath.Join(target, node.Hash))
		if errors.Is(err, syscall.EMLINK) { // it has as many names as the file system lets it
			err = p.keepCopy(ctx, filepath.Join(source, node.Hash), own.Tree)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := syncFolder(target); err != nil {
		return err
	}
	err = create(p.manifest(own), text)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
