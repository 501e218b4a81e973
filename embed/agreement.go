package embed

import (
	"context"
	"errors"
	"fmt"
	"github.com/helixd/helixd/embed/internal/blocks"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// AgreementHolds reports whether the logs by which replicas agree, in this
// server's files, have an entry from before a time that contains one of the texts.
// The server drops entries when it takes a snapshot, see Agreed.
//
// These logs compress large entries; what comes early in one, as its subject
// does, is still found.
func (s *Server) AgreementHolds(ctx context.Context, before time.Time, texts ...string) (bool, error) {
	logs, err := filepath.Glob(filepath.Join(s.opts.DataDir, "jetstream", "$SYS", "_js_", "*", "msgs", "*.blk"))
	if err != nil {
		return false, fmt.Errorf("embed: %w", err)
	}
	for _, path := range logs {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("embed: %w", err)
		}
		if blocks.HoldsBefore(raw, uint64(before.UnixNano()), texts) {
			return true, nil
		}
	}
	return false, nil
}

// Agreed has this server drop what is applied from the log by which a stream's
// replicas agree. By itself the server does so every two or three minutes.
// AgreementHolds reports whether it has succeeded: while a replica lags, or another
// is catching up from this one, nothing is dropped.
func (s *Server) Agreed(stream string) {
	srv := s.instance().srv
	if srv.JetStreamIsClustered() && srv.JetStreamIsStreamCurrent(blocks.Account, stream) {
		_ = srv.JetStreamSnapshotStream(blocks.Account, stream) // an error: see above
	}
}
