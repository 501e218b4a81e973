package maintenance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/eventlog/logtest"
)

// empty returns a server without streams, which shares w's steps.
func (w *lifecycle) empty(t *testing.T) *lifecycle {
	if w.there == nil {
		w.there = newLifecycle(t, true)
		w.there.Steps, w.there.Beside = w.Steps, nil
	}
	to := w.there
	to.clear(t)
	to.inline, to.Large, to.Nodes = w.inline, w.Large, make([]eventlog.Log, len(to.nodes))
	to.finished = false
	return to
}

// clear closes the nodes and deletes all streams.
func (w *lifecycle) clear(t *testing.T) {
	for i, l := range w.nodes {
		if l != nil {
			l.Close()
		}
		w.nodes[i] = nil
	}
	js, err := link.NewJetStream(w.conns[0])
	require.NoError(t, err)
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		require.NoError(t, js.DeleteStream(t.Context(), name))
	}
	require.NoError(t, names.Err())
	if w.dir != "" {
		w.deleted(t)
	}
	w.Stored("")
	w.stored, w.secrets = map[string][]logtest.StoredRecord{}, nil
}

// deleted waits until the files of deleted streams are gone. The server renames a
// stream's folder and removes it afterwards. During that time the next deletion of that
// name silently leaves the folder, and the next stream would find the files of this one
// in it.
func (w *lifecycle) deleted(t *testing.T) {
	require.Eventually(t, func() bool {
		left, err := filepath.Glob(filepath.Join(w.dir, "*", "*", "streams", ".*"))
		return err == nil && len(left) == 0
	}, time.Minute, time.Millisecond)
}

// holdFolder keeps the server's folder of streams from being empty. After each deletion
// the server removes an empty folder, a while later and during the creation of the next
// stream, which then fails.
func holdFolder(t *testing.T, dir string) {
	streams := filepath.Join(dir, "jetstream", "HELIX", "streams")
	require.NoError(t, os.MkdirAll(streams, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(streams, "hold"), nil, 0o600))
}

// restored restores copies into w, which is empty.
func (w *lifecycle) restored(test context.Context, end uint64, copies []logtest.LifecycleCopy) *logtest.LifecycleRestored {
	for _, c := range copies {
		var stored []logtest.StoredRecord
		last := uint64(0)
		if c.Floor > 0 {
			stored = append(stored, logtest.StoredRecord{Sequence: c.Floor})
			last = c.Floor
		}
		for _, r := range c.Records {
			stored = append(stored, logtest.StoredRecord{Sequence: r.Sequence, Previous: last, Writer: r.Writer, Ordinal: r.Ordinal})
			last = r.Sequence
		}
		w.stored[c.Session] = stored
	}
	var r *restore.Restorer
	return &logtest.LifecycleRestored{
		Lifecycle: &w.Lifecycle,
		Write: func(ctx context.Context) (err error) {
			options, hook := restore.Options{Ends: []uint64{end}}, func(ctx context.Context, point string, do func(context.Context) error) error {
				if strings.HasPrefix(point, "publish ") {
					point = logtest.RestorePoint + point
				}
				return w.Steps.Step(ctx, point, do)
			}
			if r, err = restore.Begin(link.WithTuning(ctx, link.Tuning{Hook: hook, Inline: w.inline}), w.conns[0], options); errors.Is(err, restore.ErrNotEmpty) {
				return fmt.Errorf("%w: %w", logtest.ErrNotEmpty, err)
			} else if err != nil {
				return err
			}
			defer func() {
				if err != nil {
					r.Close()
				}
			}()
			for _, c := range copies {
				if _, err := r.Session(ctx, c.Session, c.Floor, func(yield func(eventlog.Copied, error) bool) {
					for _, record := range c.Records {
						if !yield(record, nil) {
							return
						}
					}
				}); err != nil {
					return fmt.Errorf("%s: %w", c.Session, err)
				}
				if _, err := restore.Begin(test, w.conns[0], restore.Options{Ends: []uint64{end}}); !errors.Is(err, restore.ErrNotEmpty) {
					return fmt.Errorf("a second restore begins: %w", err)
				}
			}
			return nil
		},
		Finish: func(ctx context.Context) error {
			err := errors.Join(r.Finish(ctx), r.Close())
			w.finished = err == nil
			return err
		},
		Enter: func(ctx context.Context, node int) error {
			err := w.enter(ctx, node)
			if errors.Is(err, restore.ErrRestoring) {
				err = fmt.Errorf("%w: %w", logtest.ErrRestoring, err)
			}
			return err
		},
	}
}
