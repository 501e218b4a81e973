package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// Restore implements workspace.Snapshots. One that broke off is to be done
// again.
func (s *space) Restore(ctx context.Context, text json.RawMessage) error {
	release, err := s.useAlone(ctx)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := s.whileThere(ctx)
	defer cancel()
	defer s.recount()
	if err := s.restore(ctx, text); err != nil {
		return fmt.Errorf("local workspace: restore: %w", err)
	}
	return nil
}

func (s *space) restore(ctx context.Context, text json.RawMessage) error {
	want, contents := filetree.Tree{}, ""
	if text != nil {
		taken, err := s.p.parseSnapshot(text)
		if err != nil {
			return err
		}
		if taken.Tree != encoded(s.session.Root) {
			return fmt.Errorf("the snapshot is of another session tree: %w", workspace.ErrGone)
		}
		if want, _, err = s.p.load(taken); err != nil {
			return err
		}
		contents = s.p.contents(taken.Tree)
	}
	if err := s.p.unlockFiles(s.session); err != nil {
		return s.wrong(".", err)
	}
	if err := removeAll(ctx, s.root, private); err != nil {
		return err
	}
	if err := s.clear(ctx, want); err != nil {
		return err
	}
	have, err := s.scan(ctx, nil)
	if err != nil {
		return err
	}
	names := slices.SortedFunc(maps.Keys(want), filetree.Compare)
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.bring(name, have[name], want[name], contents); err != nil {
			return s.wrong(name, err)
		}
	}
	// Folders that forbid changes to their owner come last.
	for _, name := range slices.Backward(names) {
		if node := want[name]; node.Mode.IsDir() {
			if err := s.root.Chmod(name, node.Mode.Perm()); err != nil {
				return s.wrong(name, err)
			}
		}
	}
	return s.sync(".", false)
}

// clear removes what is not wanted, or is something else, and lets the owner
// change all folders.
func (s *space) clear(ctx context.Context, want filetree.Tree) error {
	var extra []string
	err := s.walk(ctx, ".", true, func(name string, info fs.FileInfo) (bool, error) {
		if node, ok := want[name]; !ok || node.Mode.Type() != info.Mode().Type() {
			extra = append(extra, name)
		}
		if info.IsDir() && info.Mode()&0o700 != 0o700 {
			return true, s.root.Chmod(name, 0o700)
		}
		return true, nil
	})
	if errors.Is(err, workspace.ErrQuota) { // too much to be looked at
		return remover{ctx: ctx, top: s.root}.empty(s.root, ".")
	}
	for _, name := range extra {
		if err := removeAll(ctx, s.root, name); err != nil {
			return s.wrong(name, err)
		}
	}
	return err
}

// bring makes a name what the snapshot has.
func (s *space) bring(name string, have, want filetree.Node, contents string) error {
	switch {
	case want.Mode.IsDir():
		_, err := s.makeFolders(name)
		return err
	case want.Mode.Type() == fs.ModeSymlink:
		if have.Link == want.Link {
			return nil
		}
		if err := s.root.RemoveAll(name); err != nil {
			return err
		}
		if err := s.root.Symlink(want.Link, name); err != nil {
			return err
		}
		return s.p.user.ownLink(s.root, name)
	case have.Hash == want.Hash && have.Mode == want.Mode && have.Modified.Equal(want.Modified):
		return nil
	}
	content, err := os.Open(filepath.Join(contents, want.Hash))
	if err != nil {
		return err
	}
	defer content.Close()
	err = s.replace(name, want.Mode.Perm(), func(f *os.File) error {
		h := sha256.New()
		if _, err := io.Copy(io.MultiWriter(f, h), content); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) != want.Hash {
			return errors.New("the snapshot's content is damaged")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.root.Chtimes(name, time.Time{}, want.Modified)
}
