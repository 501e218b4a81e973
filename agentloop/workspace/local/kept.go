package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// keepMore notes that snapshots of a tree keep more, as filetree.Kept counts it.
// Error: workspace.ErrQuota.
func (p *Provider) keepMore(tree string, more int64) error {
	p.keptMu.Lock()
	defer p.keptMu.Unlock()
	n, known := p.kept[tree]
	if !known {
		var err error
		if n, err = p.countKept(tree); err != nil {
			return err
		}
	}
	p.kept[tree] = n
	if most := filetree.MaxKept(p.opts.MaxBytes); n+more > most {
		return fmt.Errorf("%w: its snapshots keep %d bytes, %d are allowed", workspace.ErrQuota, n, most)
	}
	p.kept[tree] += more
	return nil
}

// recountKept has the next snapshot count again what the tree's keep.
func (p *Provider) recountKept(tree string) {
	p.keptMu.Lock()
	defer p.keptMu.Unlock()
	delete(p.kept, tree)
}

func (p *Provider) countKept(tree string) (n int64, err error) {
	for _, folder := range []string{"contents", "snapshots"} {
		files, err := os.ReadDir(filepath.Join(p.dir, "trees", tree, folder))
		if err != nil {
			return 0, err
		}
		for _, f := range files {
			info, err := f.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return 0, err
			}
			n += filetree.Kept(info.Size())
		}
	}
	return n, nil
}
