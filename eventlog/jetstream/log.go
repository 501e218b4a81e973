package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/internal/hold"
)

// Options configure a log. Zero values mean the defaults of an embedded
// server.
type Options struct {
	// Partitions is the number of streams. 0 means those that there are, else 1,
	// with more replicas 16. A log can't shrink; see Grow.
	Partitions int
	// Grow has a log grow that has fewer Partitions. What the log has stays where it is.
	// The caller sees to it that no other process has the log open meanwhile.
	Grow bool
	// Replicas of each stream; 0 means 1.
	Replicas int
	// Durability is what the server's operator knows of it; empty: what the
	// streams tell of their replicas, else unknown.
	Durability eventlog.Durability
	// Memory keeps the log in the server's memory: it ends with the server.
	// One replica only.
	Memory bool
	// Server is the NATS server of this process, if it keeps replicas of the
	// log: an erasure then overwrites, in its files, what is removed, and every
	// other server that keeps some has to be a node's that does so too. nil: the
	// servers overwrite message by message, and an erasure from more than one
	// replica stays pending: no node can know when it is done. On an in-process connection
	// of a server with GroupSync it is that server.
	Server Server
	// Beside names a stream in which others keep what they have of a session, and
	// its subject there, which ends in ".>"; they have the servers overwrite
	// it. An erasure is done when every replica has removed it.
	Beside func(session string, partition int) (stream, subject string)
	// Forget removes what others keep of a session that is being erased, at
	// least once, before another session of the id may be created.
	Forget func(ctx context.Context, session string) error
	// Refuses tells why nothing should be stored now, empty if it may; what
	// frees room may go on for longer. nil: there is never a reason.
	Refuses func(frees bool) string
	// Existing opens a log that exists as it is, with the partitions, the
	// replicas and the storage that it has, and creates nothing.
	Existing bool
	// ReadOnly is Existing for readers: settings that only writers rely on
	// are not looked at.
	ReadOnly bool
	// Metrics measure the log; nil: nothing does.
	Metrics *Metrics
	// hook is nil but in tests.
	hook hook
	// checkEvery is for tests; 0 means the constant.
	checkEvery time.Duration
	// restores: the streams are made for a restore, see Restore.
	restores *restoreMark
}

// groupSync reports whether the log waits for the disk itself, see durable.go.
func (o Options) groupSync() bool { return o.Server != nil && o.Server.GroupSync() }

// groupCommit reports whether sharing an append's cost is worth it: where it
// waits for a disk or for other servers, and where that is not known.
func (o Options) groupCommit() bool {
	return !o.groupSync() && (o.Replicas > 1 || !strings.HasPrefix(string(o.Durability), "interval="))
}

// syncInterval is how often the server's files reach the disk, as far as
// known; 0: at every append, or not known.
func (o Options) syncInterval() time.Duration {
	text, _ := strings.CutPrefix(string(o.Durability), "interval=")
	d, _ := time.ParseDuration(text)
	return d
}

// gatherFrom is from how many records on an atomic batch is quicker than a
// publish for each. One server stages a batch in files of its own, which costs
// more than syncing a few messages.
func (o Options) gatherFrom() int {
	switch {
	case o.Replicas > 1 || o.groupSync(): // else each publish waits for a round, or a sync
		return 2
	case o.groupCommit():
		return groupFrom
	default:
		return 8 * groupFrom
	}
}

// maxPartitions bounds Options.Partitions.
const maxPartitions = 64

// Log is an eventlog.Log on JetStream.
type Log struct {
	nc   *nats.Conn
	js   natsjs.JetStream
	opts Options
	// hubs hand out live records, one for each partition.
	hubs []*hub
	// committers store appends, one for each partition.
	committers []*committer
	// sealers pack records into segments, one for each partition.
	sealers   []*sealer
	requests  *requests
	batches   map[string]chan struct{} // by what its subjects begin with, a place for each atomic batch that a stream has open
	synced    synced
	erasing   chan struct{} // the place of the message that is being overwritten
	far       uint64        // farSequences
	few       uint64        // fewSequences
	ahead     int           // segmentsAhead
	inline    int           // inlineBytes
	forgetFor time.Duration // forgetBudget
	holds     hold.Holds
	node      string        // this log among all that are open on the deployment
	held      atomic.Uint64 // how often this log has held a session
	beside    besides
	places    places
	done      doneMarks
	checked   checkedRecords
	purged    atomic.Bool // some records may have left the log for the segments
	closed    chan struct{}
	wg        sync.WaitGroup

	version    string               // of a server that is known to be good
	alone      bool                 // no other server is there, nor elections
	streams    []*natsjs.StreamInfo // as they were at the start
	durability eventlog.Durability
	metrics    *logMetrics

	mu     sync.Mutex
	back   chan struct{} // closed and replaced when the connection is back
	leftAt time.Time     // when markLeftBlobs was called
}

// Open returns the log on nc, creating its streams if they are missing. The
// connection stays the caller's. What the log could not keep its promises on
// is refused by name: a server that is too old, other partitions than the log
// was created with, a stream's settings. A cluster that has just come up is
// waited for, see Settle. A later connection to a server that is too old is not
// used to append; see Info.
func Open(ctx context.Context, nc *nats.Conn, o *Options) (_ *Log, err error) {
	l := &Log{nc: nc, closed: make(chan struct{}), batches: map[string]chan struct{}{}, erasing: make(chan struct{}, 1), far: farSequences, few: fewSequences, ahead: segmentsAhead, inline: inlineBytes, forgetFor: forgetBudget, back: make(chan struct{})}
	if o != nil {
		l.opts = *o
	}
	if s, ok := nc.Opts.InProcessServer.(Server); ok && l.opts.Server == nil && s.GroupSync() {
		l.opts.Server = s // else the log would acknowledge what is not on the disk
	}
	l.opts.Partitions = max(l.opts.Partitions, 0)
	l.opts.Replicas = max(l.opts.Replicas, 1)
	if l.opts.Partitions > maxPartitions {
		return nil, fmt.Errorf("jetstream: at most %d partitions", maxPartitions)
	}
	js, err := newJetStream(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	l.js = js
	if l.requests, err = newRequests(l); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.requests.close()
		}
	}()
	if err := l.checkConnected(); err != nil {
		return nil, err
	}
	l.alone = isAlone(nc)
	growTo := 0
	switch {
	case l.opts.ReadOnly || l.opts.Existing:
		err = l.findPartitions(ctx)
	case l.opts.restores != nil:
		l.places = l.opts.restores.places
	default:
		growTo, err = l.choosePartitions(ctx)
	}
	if err != nil {
		return nil, err
	}
	if l.opts.Memory && l.opts.Replicas > 1 && !l.opts.ReadOnly {
		return nil, fmt.Errorf("jetstream: a log in memory has one replica: more would look durable and not be")
	}
	if l.opts.restores == nil && !l.opts.ReadOnly && !l.opts.Existing {
		if err := l.checkWhole(ctx); err != nil {
			return nil, err
		}
	}
	if growTo > 0 {
		if err := l.grow(ctx, growTo); err != nil {
			return nil, err
		}
	}
	l.synced = newSynced(l)
	for p := range l.opts.Partitions {
		for _, subjects := range []string{logSubjects, segmentSubjects} {
			l.batches[subjects+strconv.Itoa(p)] = make(chan struct{}, maxOpenBatches)
		}
		for _, c := range l.streamsOf(p) {
			if err := l.ensureStream(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	if err := l.awaitAll(ctx); err != nil {
		return nil, err
	}
	if l.opts.restores != nil {
		for i, settled := range l.places.settled {
			if err := l.storeSettled(ctx, i, settled); err != nil {
				return nil, err
			}
		}
	} else if err := l.loadPlaces(ctx); err != nil {
		return nil, err
	}
	if !l.opts.ReadOnly && l.opts.restores == nil {
		for p := range l.opts.Partitions {
			if err := l.dropGhosts(ctx, p, leaderPatience); err != nil {
				return nil, err
			}
		}
	}
	if err := l.judge(ctx); err != nil {
		return nil, err
	}
	l.metrics = l.opts.Metrics.of(l.durability)
	for p := range l.opts.Partitions {
		h := newHub(l, p)
		l.hubs = append(l.hubs, h)
		s := newSealer(l)
		l.sealers = append(l.sealers, s)
		if l.opts.hook == nil {
			l.spawn(h.watch)
		}
		if !l.opts.ReadOnly && l.opts.hook == nil {
			l.spawn(s.run)
		}
		c := &committer{log: l, grouped: l.opts.groupCommit()}
		c.begins.Store(l.begins(p))
		l.committers = append(l.committers, c)
	}
	l.watchConnection()
	if !l.opts.ReadOnly {
		if err := l.watchHolds(); err != nil {
			l.Close()
			return nil, fmt.Errorf("jetstream: %w", err)
		}
	}
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

// Info implements eventlog.Log.
func (l *Log) Info() eventlog.Info {
	info := eventlog.Info{
		Backend: "jetstream", Durability: l.durability, Partitions: l.opts.Partitions,
		MaxRecordBytes: eventlog.MaxPayload, GatherFrom: l.opts.gatherFrom(),
	}
	info.Refuses, info.RefusesErasure = l.refuses(false), l.refuses(true)
	return info
}

// Close implements eventlog.Log.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.isClosing() {
		close(l.closed)
	}
	l.mu.Unlock()
	l.wg.Wait()
	l.requests.close()
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
	p := l.partitionOf(session)
	return streamName(p), logSubject(session, p), nil
}
