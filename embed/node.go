package embed

import (
	"errors"
	"fmt"
	"github.com/helixd/helixd/embed/internal/datadir"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// nodeFile names the server of a cluster that a data folder belongs to.
const nodeFile = "helixd.node"

// identify returns the server's name, and whether the folder has yet to learn
// it. A cluster knows its servers, and what
// they keep, by name; a folder that came back under another one, or without
// its cluster, would be a stranger's. So the name stays with the folder.
//
// A cluster's server deletes every stream that the cluster does not know: one
// that kept its streams alone is not turned into one of a cluster.
func (o Options) identify() (name string, fresh bool, err error) {
	path := filepath.Join(o.DataDir, nodeFile)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("embed: data dir: %w", err)
	}
	known := strings.TrimSpace(string(raw))
	switch {
	case o.Cluster == nil && known == "":
		if o.Name == "" {
			return "helixd", false, nil
		}
		return o.Name, false, nil
	case o.Cluster == nil:
		return "", false, fmt.Errorf("embed: data dir: %s belongs to server %q of a cluster and can't be used without it", o.DataDir, known)
	case known != "" && o.Name != "" && o.Name != known:
		return "", false, fmt.Errorf("embed: data dir: %s belongs to server %q, not %q", o.DataDir, known, o.Name)
	case known != "":
		return known, false, nil
	}
	streams, err := fs.Glob(os.DirFS(o.DataDir), "jetstream/*/streams/*")
	if err != nil || len(streams) > 0 {
		return "", false, fmt.Errorf("embed: data dir: %s holds the streams of a single server, which a cluster would delete: use another folder", o.DataDir)
	}
	if name = o.Name; name == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", false, fmt.Errorf("embed: server name: %w", err)
		}
		name = host + "-" + strings.NewReplacer(":", "-", "[", "", "]", "").Replace(o.Cluster.Listen)
	}
	return name, true, nil
}

// remember writes the name down, as a whole and to the disk.
func (o Options) remember() error {
	path := filepath.Join(o.DataDir, nodeFile)
	if err := datadir.Replace(path, []byte(o.Name+"\n")); err != nil {
		return fmt.Errorf("embed: data dir: %w", err)
	}
	return nil
}
