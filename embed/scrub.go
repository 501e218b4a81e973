package embed

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/helixd/helixd/embed/internal/blocks"
	"github.com/nats-io/nats-server/v2/server"
)

// scrubPasses bounds how often Scrub reads a stream's blocks: the server may
// have replaced one by what it had read before, which is rare.
const scrubPasses = 5

// Scrub overwrites, in this server's own files, messages that a stream has
// removed: those with a sequence from `from` to upTo, or before the stream's first, on
// the subject or, if that ends in ".>", on all subjects that begin so. A message that was deleted or purged keeps
// its bytes in its block until the server removes the block. Messages that the
// stream still has the caller must not name. Blocks that hold no such sequence are
// left out.
//
// Blocks are overwritten in place: each record keeps its place and its length,
// and becomes what the server makes of a message that it overwrites itself. A
// journal in the data folder has Start, or a later Scrub, repair a record that a
// power loss cut. left is how many messages could not be overwritten: those in
// compressed blocks.
//
// A stream that is scrubbed must not also have the server overwrite single
// messages: it then writes a block back as it was when it was last read. A purge by
// sequence may do the same to the block in which it ends; see Rescrub.
func (s *Server) Scrub(ctx context.Context, stream, subject string, from, upTo uint64) (overwritten, left int, err error) {
	w := blocks.Scrubber{Dir: s.opts.DataDir, Stream: stream, Subject: subject, From: from, UpTo: upTo}
	// Before the passes: a purge that they don't see any more is then one that Rescrub sees.
	s.remember(scrubbed{blocks.Removed{Stream: stream, Subject: subject, UpTo: upTo}, from})
	found := 0
	for range scrubPasses {
		w.First, _, _, _ = s.Replica(stream)
		found, err = w.Pass(ctx, s.overwrite)
		overwritten += found
		if err != nil {
			return overwritten, w.Compressed, fmt.Errorf("embed: scrub: stream %s: %w", stream, err)
		}
		if found == 0 {
			break
		}
	}
	return overwritten, w.Compressed + found, nil
}

// ScrubPurged overwrites the messages of a subject, as in Scrub, that a purge by sequence has left in the
// block in which it ended. Without that, the server would have it again after rebuilding its index from the block.
func (s *Server) ScrubPurged(ctx context.Context, stream, subject string) error {
	first, _, _, ok := s.Replica(stream)
	if !ok || first <= 1 {
		return nil
	}
	w := blocks.Scrubber{Dir: s.opts.DataDir, Stream: stream, Subject: subject, UpTo: first - 1, First: first}
	for range scrubPasses {
		found, err := w.Pass(ctx, s.overwrite)
		if err != nil {
			return fmt.Errorf("embed: scrub: stream %s: %w", stream, err)
		}
		if found == 0 {
			break
		}
	}
	return nil // not remembered for Rescrub: the next purge comes here again
}

// Holds returns how many messages Scrub would have to overwrite.
func (s *Server) Holds(ctx context.Context, stream, subject string, from, upTo uint64) (n int, err error) {
	w := blocks.Scrubber{Dir: s.opts.DataDir, Stream: stream, Subject: subject, From: from, UpTo: upTo}
	w.First, _, _, _ = s.Replica(stream)
	n, err = w.Pass(ctx, func(*os.File, string, []blocks.Place) error { return nil })
	if err != nil {
		return n, fmt.Errorf("embed: stream %s: %w", stream, err)
	}
	return n + w.Compressed, nil
}

// Replica returns what this server's own replica of a stream has: its first and
// last sequence, and how many messages. ok is false if it has none.
func (s *Server) Replica(stream string) (first, last, messages uint64, ok bool) {
	account, err := s.instance().srv.JszAccount(&server.JSzOptions{Account: blocks.Account, Streams: true})
	if err != nil {
		return 0, 0, 0, false
	}
	for _, d := range account.Streams {
		if d.Name == stream {
			return d.State.FirstSeq, d.State.LastSeq, d.State.Msgs, true
		}
	}
	return 0, 0, 0, false
}

// overwrite is an overwriter. While it works, the server neither stops nor
// restarts.
func (s *Server) overwrite(f *os.File, block string, places []blocks.Place) error {
	s.scrubbing.Lock()
	defer s.scrubbing.Unlock()
	if s.stopped {
		return errors.New("the server is stopped")
	}
	if err := blocks.Redo(s.opts.DataDir); err != nil { // of one that failed
		return err
	}
	return blocks.Overwrite(s.opts.DataDir, f, block, places)
}

// ScrubAtStart has the next Start overwrite what Scrub would, also in compressed
// blocks and in streams of which the server itself overwrites messages: a block
// that is written as a whole may be replaced only while no server uses it.
func (s *Server) ScrubAtStart(stream, subject string, upTo uint64) error {
	s.scrubbing.Lock()
	defer s.scrubbing.Unlock()
	return blocks.AtStart(s.opts.DataDir, blocks.Removed{Stream: stream, Subject: subject, UpTo: upTo})
}
