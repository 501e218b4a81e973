// Package jetstream keeps saved folds on NATS JetStream.
//
// The fold of session S at sequence n is the last message on
// helix.snap.<p>.<S>.<n> in stream HELIX_SNAP_<p>, with p and the encoding of
// S as in the log. The stream is a cache: deleting it costs time only.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/snapshot"
)

const (
	subjects      = "helix.snap."
	headerVersion = "Helix-Fold-Version"
	headerDigest  = "Helix-Fold-Digest"
	// headerRoom is what the headers may take of a NATS payload.
	headerRoom = 16 << 10
)

// Folds implements snapshot.Folds.
type Folds struct {
	nc      *nats.Conn
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
	f := &Folds{nc: nc, js: js}
	for p := range max(partitions, 1) {
		s, err := js.Stream(ctx, streamName(p))
		if errors.Is(err, natsjs.ErrStreamNotFound) {
			s, err = js.CreateStream(ctx, natsjs.StreamConfig{
				Name: streamName(p), Description: "helixd: saved folds, a cache",
				Subjects: []string{subjects + strconv.Itoa(p) + ".*.*"}, Storage: natsjs.FileStorage,
				Compression: natsjs.S2Compression, MaxMsgsPerSubject: 1, AllowDirect: true, Replicas: max(replicas, 1),
			})
		}
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
	info, err := stream.Info(ctx, natsjs.WithSubjectFilter(prefix+"*"))
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
	m, err := stream.GetLastMsgForSubject(ctx, prefix+strconv.FormatUint(best, 10))
	if err != nil {
		return nil, fmt.Errorf("saved folds: %w", err)
	}
	version, _ := strconv.Atoi(m.Header.Get(headerVersion))
	return &snapshot.Saved{Sequence: best, Version: version, Digest: m.Header.Get(headerDigest), State: m.Data}, nil
}

// Save implements snapshot.Folds.
func (f *Folds) Save(ctx context.Context, session string, s snapshot.Saved) error {
	if len(s.State) > int(f.nc.MaxPayload())-headerRoom {
		return nil
	}
	_, prefix := f.place(session)
	m := nats.NewMsg(prefix + strconv.FormatUint(s.Sequence, 10))
	m.Header.Set(headerVersion, strconv.Itoa(s.Version))
	m.Header.Set(headerDigest, s.Digest)
	m.Data = s.State
	if _, err := f.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("saved folds: %w", err)
	}
	return nil
}
