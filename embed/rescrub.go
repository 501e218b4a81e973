package embed

import (
	"context"
	"slices"
	"sync"

	"github.com/helixd/helixd/embed/internal/blocks"
)

// mostScrubs bounds what is remembered for Rescrub.
const mostScrubs = 10_000

type scrubbed struct {
	blocks.Removed
	from uint64
}

// scrubs remembers what was scrubbed: for as long as the server runs it may
// have read a block before.
type scrubs struct {
	mu    sync.Mutex
	all   []scrubbed
	first map[string]uint64 // the first sequence of a stream when it was last looked at
}

func (s *Server) remember(what scrubbed) {
	s.done.mu.Lock()
	defer s.done.mu.Unlock()
	// An erasure repeats its scrubs. A new slice: Rescrub reads the old one.
	all := slices.DeleteFunc(slices.Clone(s.done.all), func(d scrubbed) bool { return d == what })
	all = append(all, what)
	s.done.all = all[max(0, len(all)-mostScrubs):]
	if s.done.first == nil {
		s.done.first = map[string]uint64{}
	}
	if _, known := s.done.first[what.Stream]; !known {
		s.done.first[what.Stream], _, _, _ = s.Replica(what.Stream)
	}
}

// Rescrub scrubs again the block in which a purge by sequence has ended since: the
// server may have written it as it was before it was scrubbed.
func (s *Server) Rescrub(ctx context.Context) error {
	s.done.mu.Lock()
	// A scrub that is remembered later reads what the purges up to here have written.
	all, first := s.done.all, map[string]uint64{}
	for stream, was := range s.done.first {
		if now, _, _, ok := s.Replica(stream); ok && now != was {
			first[stream] = now
		}
	}
	s.done.mu.Unlock()
	for _, d := range all {
		now, purged := first[d.Stream]
		if !purged || d.UpTo < now {
			continue
		}
		w := blocks.Scrubber{Dir: s.opts.DataDir, Stream: d.Stream, Subject: d.Subject, From: max(now, d.from), UpTo: d.UpTo, First: now, Ends: now}
		if _, err := w.Pass(ctx, s.overwrite); err != nil {
			return err
		}
	}
	s.done.mu.Lock()
	defer s.done.mu.Unlock()
	for stream, now := range first {
		s.done.first[stream] = now
	}
	return nil
}
