package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// mostBytes is the size of a lab's folder beyond which the next run replaces it by one that has people's
// labels alone.
var mostBytes int64 = 512 << 20

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
	now, next, old := settings.ServerFolder(dir), filepath.Join(dir, "next"), filepath.Join(dir, "old")
	if _, err := os.Stat(now); errors.Is(err, os.ErrNotExist) { // the process died while it replaced the folder
		_ = os.Rename(next, now) // if there is one
	}
	store, done, err := openFolder(ctx, now, log)
	if err != nil {
		return nil, nil, err // another process may be at the other folders
	}
	if err := errors.Join(os.RemoveAll(next), os.RemoveAll(old)); err != nil {
		done()
		return nil, nil, err
	}
	if sizeOf(now) <= mostBytes {
		return store, done, nil
	}
	err = copyLabels(ctx, store, next, log)
	done()
	if err == nil {
		err = errors.Join(os.Rename(now, old), os.Rename(next, now), os.RemoveAll(old))
	}
	if err != nil {
		return nil, nil, err
	}
	return openFolder(ctx, now, log)
}

func openFolder(ctx context.Context, dir string, log *slog.Logger) (eventlog.Log, func(), error) {
	srv, err := embed.Start(ctx, embed.Options{DataDir: dir, SyncInterval: time.Minute, Logger: log})
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

// copyLabels makes a folder with the labels of a log.
func copyLabels(ctx context.Context, from eventlog.Log, dir string, log *slog.Logger) error {
	to, done, err := openFolder(ctx, dir, log)
	if err != nil {
		return err
	}
	defer done()
	for id, err := range from.Sessions(ctx) {
		if err == nil && strings.HasPrefix(id, cohort.LabelsType+"-") {
			_, err = eventlog.Import(ctx, to, id, from.Read(ctx, id, 0, 0), eventlog.ImportOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sizeOf is the size of all files in a folder, in bytes, as far as they can be looked at.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
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
