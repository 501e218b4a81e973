package streams

import (
	"context"
	"errors"
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
)

// checkWhole refuses to create a missing stream if another one of the log has been in
// use. All are created before the first record, so the missing one was removed, or the
// server can't read it. What is left may be the only copy.
func (l *Set) checkWhole(ctx context.Context) error {
	var missing []string
	used := ""
	for p := range l.Partitions() {
		for _, c := range l.StreamsOf(p) {
			s, err := l.FindStream(ctx, c.Name)
			switch {
			case errors.Is(err, natsjs.ErrStreamNotFound):
				missing = append(missing, c.Name)
				continue
			case err != nil:
				return err
			}
			info := s.CachedInfo()
			if info.Config.Metadata[MetadataRestoring] != "" { // ensureStream refuses it
				return nil
			}
			if err := CheckPartitions(info.Config, c); err != nil { // another log's stream: the others need not exist
				return err
			}
			if info.State.LastSeq >= max(info.Config.FirstSeq, 1) {
				used = fmt.Sprintf("%s, whose last sequence is %d", c.Name, info.State.LastSeq)
			}
		}
	}
	for _, name := range missing {
		// Another node may be creating them, and have appended since.
		if used == "" {
			break
		}
		if _, err := l.FindStream(ctx, name); errors.Is(err, natsjs.ErrStreamNotFound) {
			return fmt.Errorf("jetstream: stream %s is missing beside %s; %s", name, used, link.LostAdvice)
		} else if err != nil {
			return err
		}
	}
	return nil
}
