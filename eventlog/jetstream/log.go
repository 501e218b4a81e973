package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

// Options configure a log. Zero values mean the defaults of an embedded
// server.
type Options struct {
	// Partitions is the number of streams; 0 means 1. It is fixed when they
	// are created.
	Partitions int
	// Replicas of each stream; 0 means 1.
	Replicas int
	// Durability is what the server's operator knows of it; empty: derived
	// from Replicas where possible, else unknown.
	Durability eventlog.Durability
	// ReadOnly opens a log that exists, with the partitions that it has, and
	// creates nothing.
	ReadOnly bool
}

// groupCommit reports whether sharing an append's cost is worth it: where it
// waits for a disk or for other servers, and where that is not known.
func (o Options) groupCommit() bool {
	return o.Replicas > 1 || !strings.HasPrefix(string(o.Durability), "interval=")
}

// maxPartitions bounds Options.Partitions.
const maxPartitions = 64

// metadataPartitions is the stream metadata key that fixes the partitions.
const metadataPartitions = "helix.partitions"

// headerRoom is what a record's headers may take of a NATS payload.
const headerRoom = 16 << 10

// Log is an eventlog.Log on JetStream.
type Log struct {
	nc   *nats.Conn
	js   natsjs.JetStream
	opts Options
	hub  *hub
	// committers store appends, one for each partition.
	committers []*committer
	closed     chan struct{}
	wg         sync.WaitGroup

	mu   sync.Mutex
	back chan struct{} // closed and replaced when the connection is back
}

// Open returns the log on nc, creating its streams if they are missing. The
// connection stays the caller's. A log that was created with other partitions
// is refused.
func Open(ctx context.Context, nc *nats.Conn, o *Options) (*Log, error) {
	l := &Log{nc: nc, closed: make(chan struct{}), back: make(chan struct{})}
	l.hub = newHub(l)
	if o != nil {
		l.opts = *o
	}
	l.opts.Partitions = max(l.opts.Partitions, 1)
	l.opts.Replicas = max(l.opts.Replicas, 1)
	if l.opts.Partitions > maxPartitions {
		return nil, fmt.Errorf("jetstream: at most %d partitions", maxPartitions)
	}
	js, err := natsjs.New(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	l.js = js
	if l.opts.ReadOnly {
		if err := l.findPartitions(ctx); err != nil {
			return nil, err
		}
	}
	for p := range l.opts.Partitions {
		if err := l.ensureStream(ctx, p); err != nil {
			return nil, err
		}
	}
	for range l.opts.Partitions {
		l.committers = append(l.committers, &committer{log: l, grouped: l.opts.groupCommit()})
	}
	l.watchConnection()
	return l, nil
}

// watchConnection tells the hub of every reconnect: what was published
// meanwhile has not come.
func (l *Log) watchConnection() {
	status := l.nc.StatusChanged(nats.CONNECTED)
	l.spawn(func() {
		defer l.nc.RemoveStatusListener(status)
		for {
			select {
			case _, ok := <-status:
				if !ok {
					return
				}
				l.mu.Lock()
				close(l.back)
				l.back = make(chan struct{})
				l.mu.Unlock()
			case <-l.closed:
				return
			}
		}
	})
}

func (l *Log) reconnected() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.back
}

// findPartitions takes over what the first stream says.
func (l *Log) findPartitions(ctx context.Context) error {
	s, err := l.js.Stream(ctx, streamName(0))
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", streamName(0), err)
	}
	n, err := strconv.Atoi(s.CachedInfo().Config.Metadata[metadataPartitions])
	if err != nil || n < 1 || n > maxPartitions {
		return fmt.Errorf("jetstream: stream %s is not of a helixd log", streamName(0))
	}
	l.opts.Partitions = n
	return nil
}

func (l *Log) ensureStream(ctx context.Context, p int) error {
	subjects := logSubjects + strconv.Itoa(p) + ".*"
	want := strconv.Itoa(l.opts.Partitions)
	s, err := l.js.Stream(ctx, streamName(p))
	if errors.Is(err, natsjs.ErrStreamNotFound) && !l.opts.ReadOnly {
		s, err = l.js.CreateStream(ctx, natsjs.StreamConfig{
			Name:               streamName(p),
			Description:        "helixd: the log of agent sessions",
			Subjects:           []string{subjects},
			Storage:            natsjs.FileStorage,
			Retention:          natsjs.LimitsPolicy,
			Discard:            natsjs.DiscardNew,
			Replicas:           l.opts.Replicas,
			AllowDirect:        true,
			AllowAtomicPublish: true,
			RePublish:          &natsjs.RePublish{Source: subjects, Destination: liveSubjects + "{{wildcard(1)}}"},
			Metadata:           map[string]string{metadataPartitions: want},
		})
	}
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", streamName(p), err)
	}
	if got := s.CachedInfo().Config.Metadata[metadataPartitions]; got != want {
		return fmt.Errorf("jetstream: stream %s was created for %q partitions, not %s", streamName(p), got, want)
	}
	return nil
}

// Info implements eventlog.Log.
func (l *Log) Info() eventlog.Info {
	d := l.opts.Durability
	if d == "" && l.opts.Replicas > 1 {
		d = eventlog.Durability(fmt.Sprintf("replicated×%d", l.opts.Replicas))
	}
	if d == "" {
		d = eventlog.DurabilityUnknown
	}
	return eventlog.Info{
		Backend: "jetstream", Durability: d, Partitions: l.opts.Partitions,
		MaxRecordBytes: int(l.nc.MaxPayload()) - headerRoom,
	}
}

// Close implements eventlog.Log.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.isClosing() {
		close(l.closed)
	}
	l.mu.Unlock()
	l.wg.Wait()
	return nil
}

func (l *Log) isClosed() bool { return l.isClosing() || l.nc.IsClosed() }

func (l *Log) isClosing() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// spawn runs f in a goroutine that Close waits for; not once it is closed.
func (l *Log) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosing() {
		return false
	}
	l.wg.Go(f)
	return true
}

// place returns the session's stream and subject.
func (l *Log) place(session string) (stream, subject string, err error) {
	if err := eventlog.ValidateSessionID(session); err != nil {
		return "", "", err
	}
	if l.isClosed() {
		return "", "", eventlog.ErrClosed
	}
	p := Partition(session, l.opts.Partitions)
	return streamName(p), logSubject(session, p), nil
}

// Sessions implements eventlog.Log.
func (l *Log) Sessions(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var ids []string
		for p := range l.opts.Partitions {
			some, err := l.sessionsOf(ctx, p)
			if err != nil {
				yield("", err)
				return
			}
			ids = append(ids, some...)
		}
		slices.Sort(ids)
		for _, id := range ids {
			if !yield(id, nil) {
				return
			}
		}
	}
}

func (l *Log) sessionsOf(ctx context.Context, p int) ([]string, error) {
	if l.isClosed() {
		return nil, eventlog.ErrClosed
	}
	s, err := l.js.Stream(ctx, streamName(p))
	if err != nil {
		return nil, fmt.Errorf("jetstream: list sessions: %w", err)
	}
	info, err := s.Info(ctx, natsjs.WithSubjectFilter(logSubjects+strconv.Itoa(p)+".*"))
	if err != nil {
		return nil, fmt.Errorf("jetstream: list sessions: %w", err)
	}
	ids := make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		id, err := sessionOf(subject[strings.LastIndexByte(subject, '.')+1:])
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
