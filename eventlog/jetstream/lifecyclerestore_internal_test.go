package jetstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
)

// restore restores copies into an empty deployment, which nobody can open before that
// has ended, and goes on with their sessions there.
func (w *lifecycle) restore(ctx context.Context, end uint64, copies []logtest.LifecycleCopy) error {
	dir, err := os.MkdirTemp("", "lifecycle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	srv, err := embed.Start(ctx, embed.Options{DataDir: dir, SyncInterval: time.Minute})
	if err != nil {
		return err
	}
	defer srv.Stop()
	nc, err := srv.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	r, err := Restore(ctx, nc, RestoreOptions{Ends: []uint64{end}})
	if err != nil {
		return err
	}
	defer r.Close()
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
		// Until all is there, nobody reads any of it or creates it again.
		if _, err := Open(ctx, nc, &Options{}); !errors.Is(err, ErrRestoring) {
			return fmt.Errorf("a log opens that is being restored: %w", err)
		}
		if _, err := Restore(ctx, nc, RestoreOptions{Ends: []uint64{end}}); !errors.Is(err, ErrNotEmpty) {
			return fmt.Errorf("a second restore begins: %w", err)
		}
	}
	if err := r.Finish(ctx); err != nil {
		return err
	}
	log, err := Open(ctx, nc, &Options{})
	if err != nil {
		return err
	}
	defer log.Close()
	for _, c := range copies {
		if err := restored(ctx, log, c); err != nil {
			return fmt.Errorf("%s: %w", c.Session, err)
		}
	}
	return nil
}

// restored compares a session with its copy, appends to it and erases it.
func restored(ctx context.Context, log *Log, c logtest.LifecycleCopy) error {
	if len(c.Records) == 0 {
		return nil
	}
	for step := range 3 {
		var got []eventlog.Copied
		floor, records, err := log.Copy(ctx, c.Session, maxEnd)
		if err != nil {
			return err
		}
		for r, err := range records {
			if err != nil {
				return err
			}
			got = append(got, r)
		}
		if floor != c.Floor || !slices.EqualFunc(got, c.Records, func(a, b eventlog.Copied) bool { return reflect.DeepEqual(a, b) }) {
			return fmt.Errorf("restored %d records behind %d, of %d behind %d, step %d", len(got), floor, len(c.Records), c.Floor, step)
		}
		if step == 2 {
			break
		}
		last := got[len(got)-1].Sequence
		entries := textEntries(c.Session, 1)
		if last, err = log.Append(ctx, c.Session, last, entries); err != nil {
			return err
		}
		m, err := log.messageAt(ctx, streamName(0), last)
		if err != nil {
			return err
		}
		c.Records = append(slices.Clip(c.Records), eventlog.Copied{Record: eventlog.Record{Sequence: last, Time: m.at, Entry: entries[0]}})
	}
	if _, err := log.Erase(ctx, c.Session); err != nil {
		return err
	}
	if head, err := log.Head(ctx, c.Session); !errors.Is(err, eventlog.ErrSessionNotFound) {
		return fmt.Errorf("it was erased and has the head %d: %w", head, err)
	}
	return nil
}
