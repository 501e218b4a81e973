// Package beside copies what a deployment stores beside the log into a backup, and from
// there into another deployment: files of workspaces, revoked rights of NATS subscribers,
// and what tenants have spent.
package beside

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/daily"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/snapshot/backup"
)

// Names of the parts, as backups have them.
const (
	workspaces  = "workspaces"
	revocations = "revocations"
	days        = "days"
)

// log knows which sessions there are.
type log interface {
	Head(ctx context.Context, session string) (uint64, error)
}

func has(ctx context.Context, l log, session string) (bool, error) {
	_, err := l.Head(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Of returns what the deployment of a log stores beside it. Files of sessions that the log
// does not have, such as erased ones, are left out.
func Of(nc *nats.Conn, l log) []backup.Beside {
	return []backup.Beside{
		{Name: workspaces, Items: func(ctx context.Context) iter.Seq2[eventlog.CopiedItem, error] {
			return objects.Copy(ctx, nc, func(ctx context.Context, root string) (bool, error) { return has(ctx, l, root) })
		}},
		{Name: revocations, Items: func(ctx context.Context) iter.Seq2[eventlog.CopiedItem, error] { return subscriber.Copy(ctx, nc) }},
		{Name: days, Items: func(ctx context.Context) iter.Seq2[eventlog.CopiedItem, error] { return daily.Copy(ctx, nc) }},
	}
}

// Filler stores items of backups in a deployment.
type Filler struct {
	nc       *nats.Conn
	log      log
	replicas int
	logger   *slog.Logger

	files *objects.Provider // nil until there is one
	days  *daily.Days
	// root is that of the last item of a workspace, and restored says whether the log has it.
	root     string
	restored bool
	unknown  map[string]bool
}

// NewFiller returns a filler for the deployment of a log, whose sessions were restored.
func NewFiller(nc *nats.Conn, l log, replicas int, logger *slog.Logger) *Filler {
	return &Filler{
		nc: nc, log: l, replicas: replicas, logger: logger, unknown: map[string]bool{},
		days: daily.New(nc, replicas, nil),
	}
}

// Fill stores an item of a part of a backup. Files of sessions that were not restored are
// left out, and so are parts that a later version of helixd has written.
func (f *Filler) Fill(ctx context.Context, of string, item eventlog.CopiedItem) error {
	switch of {
	case workspaces:
		return f.file(ctx, item)
	case revocations:
		return subscriber.Fill(ctx, f.nc, f.replicas, item)
	case days:
		_, err := f.days.Save(ctx, item.Key, item.Data, 0) // false: its first try succeeded
		return err
	}
	if !f.unknown[of] {
		f.unknown[of] = true
		f.logger.Warn("the backup has something that this version of helixd does not know: it is not restored", "part", of)
	}
	return nil
}

func (f *Filler) file(ctx context.Context, item eventlog.CopiedItem) (err error) {
	root, ok := objects.RootOf(item.Key)
	if !ok {
		return fmt.Errorf("%q is not the key of a part of a workspace", item.Key)
	}
	if root != f.root {
		if f.restored, err = has(ctx, f.log, root); err != nil {
			return err
		}
		f.root = root
	}
	if !f.restored {
		return nil
	}
	if f.files == nil {
		if f.files, err = objects.Open(ctx, f.nc, &objects.Options{Replicas: f.replicas}); err != nil {
			return err
		}
	}
	return f.files.Fill(ctx, item)
}
