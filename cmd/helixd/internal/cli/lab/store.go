package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// mostLabs is how many labs a folder keeps, the newest ones.
const mostLabs = 10

// folderOf is the data folder of a lab's log. Each lab.yaml has its own, so that several can run at the
// same time.
func folderOf(file, dir string) string {
	if dir == "" {
		name := filepath.Base(file)
		return filepath.Join(filepath.Dir(file), ".lab", strings.TrimSuffix(name, filepath.Ext(name)))
	}
	return dir
}

// openLog opens the log in a data folder, or creates it. What it has is a daemon's: helixd lab view
// serves it.
func openLog(ctx context.Context, dir string, log *slog.Logger) (eventlog.Log, func(), error) {
	if err := makeFolder(dir); err != nil {
		return nil, nil, err
	}
	srv, err := embed.Start(ctx, embed.Options{DataDir: settings.ServerFolder(dir), SyncInterval: time.Minute, Logger: log})
	if err != nil {
		return nil, nil, fmt.Errorf("the lab's log in %s: %w (helixd lab view or another run may have it open; --dir names another folder)", dir, err)
	}
	nc, err := srv.Connect()
	if err != nil {
		srv.Stop()
		return nil, nil, err
	}
	store, err := jetstream.Open(ctx, nc, &jetstream.Options{Server: srv})
	if err != nil {
		nc.Close()
		srv.Stop()
		return nil, nil, err
	}
	return store, func() {
		store.Close()
		nc.Close()
		srv.Stop()
	}, nil
}

// makeFolder creates a folder that git does not look into.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ignore := filepath.Join(dir, ".gitignore")
	if _, err := os.Stat(ignore); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(ignore, []byte("*\n"), 0o600)
}
