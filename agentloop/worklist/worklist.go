package worklist

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Stream is the name of the list's stream.
const Stream = "HELIX_RUNS"

const (
	subjects = "helix.runs."
	// retryPause is how long an append to the list waits for a leader.
	retryPause = 100 * time.Millisecond
	// tryTimeout bounds one try of a request to the list: what reaches servers
	// without a leader is dropped.
	tryTimeout = time.Second
	// maxTryTimeout bounds how long the whole list may take to be read.
	maxTryTimeout = 30 * time.Second
	// leaderPatience is how long a request is repeated for a leader of the list
	// to be elected.
	leaderPatience = 20 * time.Second
)

// Options of a work list.
type Options struct {
	// Node names this process, as the loop's Options.Node. Required. No two
	// processes may have the same name, not even one after the other: it is how
	// a run says that its process has died.
	Node string
	// Replicas of the list; 0 means 1.
	Replicas int
	// Memory keeps the list in the servers' memory, as the log's option.
	Memory bool
	// Patience is after what time a tree that has no work is taken off the
	// list: who put it there has appended by then, or will not. 0: 30 seconds.
	Patience time.Duration
	Logger   *slog.Logger // nil: silent
	Metrics  *Metrics     // nil: nothing is measured

	scanEvery time.Duration // tests have another one
}

// Loop is what drives trees on this node; *engine.Loop does.
type Loop interface {
	AgentTypes() []string
	InitialState(agentType string) (json.RawMessage, bool)
	Holds(session string, ticket uint64) bool
	Offer(session string, ticket uint64, known bool)
	Load() int
}

// Worklist implements agentloop.Worklist.
type Worklist struct {
	nc     *nats.Conn
	js     natsjs.JetStream
	stream natsjs.Stream
	opts   Options
	loop   Loop // from Serve on

	instance string

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	subs []*nats.Subscription
	look chan struct{} // has the list looked through
	woke chan woken    // trees that another node asks to drive
	// since is the time since which no node holds a tree, of those at the last look.
	since    map[tree]time.Time
	failures atomic.Int64 // to read the list, in a row
	said     atomic.Int64 // how many trees this node drives, as it has announced

	mu      sync.Mutex
	peers   map[string]*peer
	heard   time.Time // when this node heard itself last
	leaving bool
	gone    bool // nothing is announced any more
	// wakened are the trees for which another node was woken lately; following: it is
	// looked whether one has taken them up.
	wakened   map[tree]wakened
	following bool
	// hosting are the subscriptions by which other nodes find the agents of this node.
	hosting map[string]*nats.Subscription
}

var _ agentloop.Worklist = (*Worklist)(nil)

// Open finds the list, or makes it. The connection stays the caller's; it
// should not be the log's, whose traffic would delay what the nodes say to each
// other, and should reconnect within a second: a node that is silent for longer
// is taken for dead.
func Open(ctx context.Context, nc *nats.Conn, o Options) (*Worklist, error) {
	if o.Node == "" {
		return nil, errors.New("worklist: Node is required")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or(o.Metrics, NewMetrics(nil))
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	o.scanEvery = cmp.Or(o.scanEvery, scanEvery)
	js, err := jetstream.NewJetStream(nc)
	if err != nil {
		return nil, fmt.Errorf("worklist: %w", err)
	}
	l := &Worklist{
		instance: rand.Text(),
		nc:       nc, js: js, opts: o, peers: map[string]*peer{}, hosting: map[string]*nats.Subscription{}, wakened: map[tree]wakened{}, look: make(chan struct{}, 1), woke: make(chan woken, maxWoken),
	}
	if l.stream, err = l.ensure(ctx); err != nil {
		return nil, fmt.Errorf("worklist: stream %s: %w", Stream, err)
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// ensure makes the stream.
func (l *Worklist) ensure(ctx context.Context) (natsjs.Stream, error) {
	storage := natsjs.FileStorage
	if l.opts.Memory {
		storage = natsjs.MemoryStorage
	}
	return jetstream.FindOrCreate(ctx, l.nc, l.js, natsjs.StreamConfig{
		Name: Stream, Description: "helixd: trees that may have work", Subjects: []string{subjects + "*.*"},
		Storage: storage, Replicas: max(l.opts.Replicas, 1),
	})
}

// Announce implements agentloop.Worklist.
func (l *Worklist) Announce(ctx context.Context, agentType, session string) (ticket uint64, err error) {
	err = l.patiently(ctx, func(ctx context.Context) error {
		ack, err := l.js.Publish(ctx, tree{agentType, session}.subject(), nil)
		if err == nil {
			ticket = ack.Sequence
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("worklist: %w: %w", eventlog.ErrUnavailable, err)
	}
	l.sayLoad()
	return ticket, nil
}

// Remove implements agentloop.Worklist. It leaves no byte of the ids.
func (l *Worklist) Remove(ctx context.Context, tickets []uint64) error {
	defer l.sayLoad()
	for _, ticket := range tickets {
		err := l.patiently(ctx, func(ctx context.Context) error {
			err := l.stream.SecureDeleteMsg(ctx, ticket)
			if err == nil {
				return nil
			}
			// The answer does not distinguish a missing ticket from other failures.
			if _, gerr := l.stream.GetMsg(ctx, ticket); errors.Is(gerr, natsjs.ErrMsgNotFound) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("worklist: %w: %w", eventlog.ErrOutcomeUnknown, err)
		}
	}
	return nil
}

// Forget implements agentloop.Worklist.
func (l *Worklist) Forget(ctx context.Context, session string) error {
	for {
		var m *natsjs.RawStreamMsg
		err := l.patiently(ctx, func(ctx context.Context) (err error) {
			m, err = l.stream.GetLastMsgForSubject(ctx, subjects+"*."+layout.Token(session))
			if errors.Is(err, natsjs.ErrMsgNotFound) {
				return nil
			}
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("worklist: %w: %w", eventlog.ErrOutcomeUnknown, err)
		case m == nil:
			return nil
		}
		if err := l.Remove(ctx, []uint64{m.Sequence}); err != nil {
			return err
		}
	}
}

// patiently repeats what has no answer, or none to answer: the list's leader
// may be on its way.
func (l *Worklist) patiently(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	for {
		one, cancel := context.WithTimeout(ctx, tryTimeout)
		err := try(one)
		cancel()
		refused, answered := errors.AsType[*natsjs.APIError](err)
		if err == nil || answered && refused.Code != http.StatusServiceUnavailable || ctx.Err() != nil || l.nc.IsClosed() {
			return err
		}
		if perr := eventlog.Sleep(ctx, retryPause); perr != nil {
			return err
		}
	}
}

// woken is a tree that another node asks to drive.
type woken struct {
	tree
	here bool // it asks this node
}

// tree is a session tree and its root's agent.
type tree struct{ agentType, session string }

func (t tree) subject() string {
	return subjects + layout.Token(t.agentType) + "." + layout.Token(t.session)
}

// treeOf is the inverse of subject.
func treeOf(subject string) (t tree, ok bool) {
	rest, ok := strings.CutPrefix(subject, subjects)
	agent, session, two := strings.Cut(rest, ".")
	if !ok || !two {
		return t, false
	}
	if t.agentType, ok = layout.Untoken(agent); !ok {
		return t, false
	}
	t.session, ok = layout.Untoken(session)
	return t, ok
}
