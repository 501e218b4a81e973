package backup

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
)

// Verify reads a backup to its end and reports problems with the file and with its
// records to found, see [integrity.Check]. It returns an error if it can't continue for
// another reason, such as ErrVersion.
func Verify(ctx context.Context, in io.Reader, found func(integrity.Finding)) (Header, Summary, error) {
	h, done, err := Read(ctx, in, Visitor{Session: func(session string, floor uint64, records iter.Seq2[eventlog.Copied, error]) error {
		_, err := integrity.Check(session, floor > 0, Plain(records), found)
		return err
	}})
	if errors.Is(err, ErrDamaged) {
		found(integrity.Finding{Code: integrity.FoundBackup, Detail: err.Error()})
		err = nil
	}
	return h, done, err
}

// Plain yields a session's records without what a copy of the log needs beside them.
func Plain(records iter.Seq2[eventlog.Copied, error]) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for c, err := range records {
			if !yield(c.Record, err) {
				return
			}
		}
	}
}
