// Package jetstream keeps saved folds on NATS JetStream.
//
// The fold of session S at sequence n is a message on
// helix.snap.<p>.<S>.<n> in stream HELIX_SNAP_<p>, with p and the encoding of
// S as in the log. What is too large for it lies in parts on
// helix.snap.<p>.<S>.<n>.<i>, which are stored before. The stream is a cache:
// deleting it costs time only.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/snapshot"
)

const (
	subjects      = "helix.snap."
	headerVersion = "Helix-Fold-Version"
	headerDigest  = "Helix-Fold-Digest"
	headerParts   = "Helix-Fold-Parts"
	// partBytes is the size of a part: an outside deployment takes messages
	// of 1 MiB by default.
	partBytes = 512 << 10
	// maxBytes is the largest fold that is kept.
	maxBytes = 64 << 20
	// tryTimeout is how long one request waits for the stream's leader: a fold
	// of the log itself is better than to wait for an election.
	tryTimeout = time.Second
)

// Folds implements snapshot.Folds.
type Folds struct {
	js      natsjs.JetStream
	streams []natsjs.Stream // by partition
}

// Open returns the saved folds beside a log of that many partitions, creating
// their streams if they are missing.
func Open(ctx context.Context, nc *nats.Conn, partitions, replicas int) (*Folds, error) {
	js, err := natsjs.New(nc)
	if err != nil {
		return nil, fmt.Errorf("saved folds: %w", err)
	}
	f := &Folds{js: js}
	for p := range max(partitions, 1) {
		config := natsjs.StreamConfig{
			Name: streamName(p), Description: "helixd: saved folds, a cache",
			Subjects: []string{subjects + strconv.Itoa(p) + ".>"}, Storage: natsjs.FileStorage,
			Compression: logjs.CompressionOf(replicas), MaxMsgsPerSubject: 1, AllowDirect: true, Replicas: max(replicas, 1),
		}
		var s natsjs.Stream
		err := logjs.Settle(ctx, nc, func(ctx context.Context) (err error) {
			s, err = js.CreateOrUpdateStream(ctx, config)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("saved folds: stream %s: %w", streamName(p), err)
		}
		f.streams = append(f.streams, s)
	}
	return f, nil
}

func streamName(p int) string { return fmt.Sprintf("HELIX_SNAP_%d", p) }

func (f *Folds) place(session string) (stream natsjs.Stream, prefix string) {
	p := logjs.Partition(session, len(f.streams))
	return f.streams[p], fmt.Sprintf("%s%d.%s.", subjects, p, logjs.Token(session))
}

// Nearest implements snapshot.Folds.
func (f *Folds) Nearest(ctx context.Context, session string, n uint64) (*snapshot.Saved, error) {
	stream, prefix := f.place(session)
	try, cancel := context.WithTimeout(ctx, tryTimeout)
	info, err := stream.Info(try, natsjs.WithSubjectFilter(prefix+"*"))
	cancel()
	if err != nil {
		return nil, fmt.Errorf("saved folds: %w", err)
	}
	best := uint64(0)
	for subject := range info.State.Subjects {
		seq, err := strconv.ParseUint(strings.TrimPrefix(subject, prefix), 10, 64)
		if err == nil && seq <= n {
			best = max(best, seq)
		}
	}
	if best == 0 {
		return nil, nil
	}
	subject := prefix + strconv.FormatUint(best, 10)
	m, err := last(ctx, stream, subject)
	if err != nil {
		return nil, fmt.Errorf("saved folds: %w", err)
	}
	version, _ := strconv.Atoi(m.Header.Get(headerVersion))
	saved := &snapshot.Saved{Sequence: best, Version: version, Digest: m.Header.Get(headerDigest), State: m.Data}
	parts, _ := strconv.Atoi(m.Header.Get(headerParts))
	for i := range parts {
		part, err := last(ctx, stream, subject+"."+strconv.Itoa(i))
		if err != nil {
			return nil, fmt.Errorf("saved folds: part %d: %w", i, err)
		}
		saved.State = append(saved.State, part.Data...)
	}
	return saved, nil
}

func last(ctx context.Context, stream natsjs.Stream, subject string) (*natsjs.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return stream.GetLastMsgForSubject(ctx, subject)
}

// Save implements snapshot.Folds.
func (f *Folds) Save(ctx context.Context, session string, s snapshot.Saved) error {
	if len(s.State) > maxBytes {
		return nil
	}
	stream, prefix := f.place(session)
	subject := prefix + strconv.FormatUint(s.Sequence, 10)
	// A message that another replaces leaves its bytes behind, which an
	// erasure would not find.
	if err := f.erase(ctx, stream, subject+".>"); err != nil {
		return err
	}
	if err := f.erase(ctx, stream, subject); err != nil {
		return err
	}
	m := nats.NewMsg(subject)
	m.Header.Set(headerVersion, strconv.Itoa(s.Version))
	m.Header.Set(headerDigest, s.Digest)
	m.Data = s.State
	if len(s.State) > partBytes {
		n := 0
		for part := range slices.Chunk(s.State, partBytes) {
			if _, err := f.js.Publish(ctx, subject+"."+strconv.Itoa(n), part); err != nil {
				return fmt.Errorf("saved folds: %w", err)
			}
			n++
		}
		m.Header.Set(headerParts, strconv.Itoa(n))
		m.Data = nil
	}
	if _, err := f.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("saved folds: %w", err)
	}
	return nil
}

// Erase implements snapshot.Folds.
func (f *Folds) Erase(ctx context.Context, session string) error {
	stream, prefix := f.place(session)
	return f.erase(ctx, stream, prefix+">")
}

// erase overwrites all messages of the subjects.
func (f *Folds) erase(ctx context.Context, stream natsjs.Stream, filter string) error {
	info, err := stream.Info(ctx, natsjs.WithSubjectFilter(filter))
	if err != nil {
		return fmt.Errorf("saved folds: %w", err)
	}
	for subject := range info.State.Subjects {
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if err == nil {
			err = stream.SecureDeleteMsg(ctx, m.Sequence)
		}
		if err == nil || errors.Is(err, natsjs.ErrMsgNotFound) {
			continue
		}
		// The answer does not tell one that is gone from other failures.
		if _, gerr := stream.GetLastMsgForSubject(ctx, subject); !errors.Is(gerr, natsjs.ErrMsgNotFound) {
			return fmt.Errorf("saved folds: erase: %w", err)
		}
	}
	return nil
}
