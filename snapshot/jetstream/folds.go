// Package jetstream stores saved folds on NATS JetStream.
//
// The fold of session S at sequence n is a message on helix.snap.<p>.<S>.<n> in stream
// HELIX_SNAP_<p>, with p and the encoding of S as in the log. A fold that is not in JSON
// is on helix.snap.<p>.<S>.<n>-<form>. A fold that is too large for one message is split
// into parts on helix.snap.<p>.<S>.<n>.<i>, which are stored first.
//
// The parts that successive folds have in common are pages, which are stored once,
// compressed with S2, on helix.snap.<p>.<S>.page.<hash>, also before their fold. Only
// folds that are not in JSON have pages. Smaller pages are in fewer of the server's
// blocks, which it reads whole.
//
// The streams are a cache: deleting them costs time only, except for sessions whose
// beginning retention has removed.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/snapshot"
)

const (
	subjects      = "helix.snap."
	headerVersion = "Helix-Fold-Version"
	headerDigest  = "Helix-Fold-Digest"
	headerParts   = "Helix-Fold-Parts"
	// partBytes is the size of a part: by default a NATS server takes messages up to 1
	// MiB.
	partBytes = 512 << 10
	// maxBytes is the size of the largest fold that is stored.
	maxBytes = 64 << 20
	// tryTimeout is how long one request of a reader waits for the stream's leader:
	// folding the log is faster than waiting for an election.
	tryTimeout = time.Second
	// aloneTimeout is how long a request waits for a server without a cluster, which has
	// no elections: if it is slow, so is the log.
	aloneTimeout = 20 * time.Second
)

// Places returns the partition of a session, and how many there are: a log, or
// [layout.Hashed].
type Places interface {
	Partitions() int
	PartitionOf(session string) int
}

// Folds implements snapshot.Folds.
type Folds struct {
	nc       *nats.Conn
	js       natsjs.JetStream
	leaders  nats.JetStreamContext // its requests for messages go to the leaders
	places   Places
	replicas int           // of streams that it creates; 0: it is open for reading
	try      time.Duration // tryTimeout or aloneTimeout

	mu      sync.Mutex
	streams []natsjs.Stream // by partition
}

func newFolds(nc *nats.Conn, places Places) (*Folds, error) {
	f := &Folds{nc: nc, places: places, try: tryTimeout}
	if nc.ConnectedClusterName() == "" {
		f.try = aloneTimeout
	}
	js, err := logjs.NewJetStream(nc)
	if err != nil {
		return nil, fmt.Errorf("saved folds: %w", err)
	}
	f.js = js
	if f.leaders, err = nc.JetStream(); err != nil {
		return nil, fmt.Errorf("saved folds: %w", err)
	}
	return f, nil
}

// Open returns the saved folds for the sessions of a log, and creates their streams if
// they are missing.
func Open(ctx context.Context, nc *nats.Conn, places Places, replicas int) (*Folds, error) {
	f, err := newFolds(nc, places)
	if err != nil {
		return nil, err
	}
	f.replicas = max(replicas, 1)
	_, err = f.stream(ctx, places.Partitions()-1)
	return f, err
}

// stream returns the stream of a partition, and creates missing streams up to it: the log
// may have grown.
func (f *Folds) stream(ctx context.Context, p int) (natsjs.Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := len(f.streams); n <= p && f.replicas > 0; n++ {
		config := natsjs.StreamConfig{
			Name: streamName(n), Description: "helixd: saved folds, a cache",
			Subjects: []string{subjects + strconv.Itoa(n) + ".>"}, Storage: natsjs.FileStorage,
			Compression: logjs.CompressionOf(f.replicas), MaxMsgsPerSubject: 1, AllowDirect: true, Replicas: f.replicas,
		}
		var s natsjs.Stream
		err := logjs.Settle(ctx, f.nc, func(ctx context.Context) (err error) {
			s, err = f.js.CreateOrUpdateStream(ctx, config)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("saved folds: stream %s: %w", streamName(n), err)
		}
		f.streams = append(f.streams, s)
	}
	if p >= len(f.streams) {
		return nil, nil
	}
	return f.streams[p], nil
}

func streamName(p int) string { return fmt.Sprintf("HELIX_SNAP_%d", p) }

// place returns the stream and subject prefix of a session's folds. stream is nil if it
// does not exist and is not created.
func (f *Folds) place(ctx context.Context, session string) (stream natsjs.Stream, prefix string, err error) {
	p := f.places.PartitionOf(session)
	stream, err = f.stream(ctx, p)
	return stream, prefixOf(session, p), err
}

func prefixOf(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s.", subjects, partition, layout.Token(session))
}

// Place returns the stream and the subjects of a session's saved folds, for the
// log's Options.Beside.
func Place(session string, partition int) (stream, subject string) {
	return streamName(partition), prefixOf(session, partition) + ">"
}

// mark is the place of a saved fold.
type mark struct {
	seq  uint64
	form snapshot.Form
}

// token is the end of the fold's subject.
func (m mark) token() string {
	n := strconv.FormatUint(m.seq, 10)
	if m.form == snapshot.JSON {
		return n
	}
	return n + "-" + string(m.form)
}

func markOf(token string) (m mark, ok bool) {
	n, form, _ := strings.Cut(token, "-")
	seq, err := strconv.ParseUint(n, 10, 64)
	return mark{seq, snapshot.Form(form)}, err == nil && seq > 0
}

// marks returns the places of the session's saved folds that have one of the forms.
func marks(ctx context.Context, stream natsjs.Stream, prefix string, forms ...snapshot.Form) (all []mark, err error) {
	info, err := stream.Info(ctx, natsjs.WithSubjectFilter(prefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("saved folds: %w", err)
	}
	for subject := range info.State.Subjects {
		if m, ok := markOf(strings.TrimPrefix(subject, prefix)); ok && slices.Contains(forms, m.form) {
			all = append(all, m)
		}
	}
	return all, nil
}

// nearest returns the last fold at or before n; of those at the same sequence, the one in
// the first form. If there is none, its sequence is 0.
func nearest(all []mark, n uint64, forms ...snapshot.Form) (best mark) {
	for _, form := range forms {
		for _, m := range all {
			if m.form == form && m.seq <= n && m.seq > best.seq {
				best = m
			}
		}
	}
	return best
}

// Nearest implements snapshot.Folds.
func (f *Folds) Nearest(ctx context.Context, session string, n uint64, forms ...snapshot.Form) (*snapshot.Saved, error) {
	stream, prefix, err := f.place(ctx, session)
	if stream == nil || err != nil {
		return nil, err
	}
	try, cancel := context.WithTimeout(ctx, f.try)
	all, err := marks(try, stream, prefix, forms...)
	cancel()
	if err != nil {
		return nil, err
	}
	best := nearest(all, n, forms...)
	if best.seq == 0 {
		return nil, nil
	}
	subject := prefix + best.token()
	header, body, err := f.whole(ctx, stream, subject)
	if err != nil {
		return nil, err
	}
	version, _ := strconv.Atoi(header.Get(headerVersion))
	saved := &snapshot.Saved{
		Sequence: best.seq, Version: version, Digest: header.Get(headerDigest), Form: best.form, State: body, Own: len(body),
	}
	if best.form != snapshot.JSON {
		saved.State, err = f.assemble(ctx, stream, prefix, body)
	}
	return saved, err
}

// whole returns a message with its parts. If one of them is missing, the body is empty.
func (f *Folds) whole(ctx context.Context, stream natsjs.Stream, subject string) (nats.Header, []byte, error) {
	m, err := f.last(ctx, stream, subject)
	if err != nil {
		return nil, nil, err
	}
	if m == nil { // removed since the leader has listed it, or damaged
		return nil, nil, nil
	}
	body := m.Data
	parts, _ := strconv.Atoi(m.Header.Get(headerParts))
	for i := range parts {
		part, err := f.last(ctx, stream, partSubject(subject, i))
		if err != nil {
			return nil, nil, err
		}
		if part == nil {
			return m.Header, nil, nil
		}
		body = append(body, part.Data...)
	}
	return m.Header, body, nil
}

func partSubject(subject string, i int) string { return subject + "." + strconv.Itoa(i) }

// last returns a subject's last message, or nil. Any replica may answer, whose answers cost
// less; the leader is asked for what one does not have.
func (f *Folds) last(ctx context.Context, stream natsjs.Stream, subject string) (*natsjs.RawStreamMsg, error) {
	try, cancel := context.WithTimeout(ctx, f.try)
	defer cancel()
	m, err := stream.GetLastMsgForSubject(try, subject)
	if errors.Is(err, natsjs.ErrMsgNotFound) {
		return f.ofLeader(ctx, stream, subject)
	}
	if err != nil {
		return nil, fmt.Errorf("saved folds: %s: %w", subject, err)
	}
	return m, nil
}

// ofLeader returns a subject's last message as the stream's leader has it, or nil. natsjs
// asks any replica if the stream allows that.
func (f *Folds) ofLeader(ctx context.Context, stream natsjs.Stream, subject string) (*natsjs.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, f.try)
	defer cancel()
	m, err := f.leaders.GetLastMsg(stream.CachedInfo().Config.Name, subject, nats.Context(ctx))
	if errors.Is(err, nats.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("saved folds: %s: %w", subject, err)
	}
	return (*natsjs.RawStreamMsg)(m), nil
}

// Erase implements snapshot.Folds.
func (f *Folds) Erase(ctx context.Context, session string) error {
	if f.replicas == 0 {
		return errReading
	}
	stream, prefix, err := f.place(ctx, session)
	if err != nil {
		return err
	}
	return f.erase(ctx, stream, prefix+">")
}

// erase overwrites all messages of the subjects that the stream's leader knows: a replica
// that lags may not know of one.
func (f *Folds) erase(ctx context.Context, stream natsjs.Stream, filter string) error {
	for range eraseTries {
		info, err := stream.Info(ctx, natsjs.WithSubjectFilter(filter))
		if err != nil {
			return fmt.Errorf("saved folds: %w", err)
		}
		if len(info.State.Subjects) == 0 {
			return nil
		}
		if err := f.eraseThese(ctx, stream, info.State.Subjects); err != nil {
			return err
		}
	}
	return fmt.Errorf("saved folds: erase: messages on %s are still there", filter)
}

// eraseTries is how often the leader is asked for remaining messages.
const eraseTries = 10

func (f *Folds) eraseThese(ctx context.Context, stream natsjs.Stream, subjects map[string]uint64) error {
	for subject := range subjects {
		m, err := f.ofLeader(ctx, stream, subject)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if err := f.remove(ctx, stream, subject, m.Sequence); err != nil {
			return err
		}
	}
	return nil
}

// remove overwrites the message of a subject that has a sequence, if it is still there.
func (f *Folds) remove(ctx context.Context, stream natsjs.Stream, subject string, seq uint64) error {
	err := stream.SecureDeleteMsg(ctx, seq)
	if err == nil || errors.Is(err, natsjs.ErrMsgNotFound) {
		return nil
	}
	// The answer does not distinguish a missing message from other failures.
	if m, gerr := f.ofLeader(ctx, stream, subject); gerr == nil && (m == nil || m.Sequence != seq) {
		return nil
	}
	return fmt.Errorf("saved folds: erase: %w", err)
}
