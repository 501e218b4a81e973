package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

const (
	// feedBatch is how many messages a feed requests at a time: at the log's end each
	// batch waits for the disk once. If the messages of the last request were more than
	// feedBytes, it requests feedFew, which bounds the memory of each partition. (If the
	// server counted the bytes, with max_bytes, it would take ten times as long.)
	feedBatch = 256
	feedFew   = 64
	feedBytes = 1 << 20
	// feedPause follows every batch while there are more: a consumer that catches up
	// holds the stream's lock, and appends wait.
	feedPause = time.Millisecond
	// feedPull is how long the server keeps a request for messages, feedBeat how often it
	// sends a heartbeat meanwhile. A consumer that was silent for feedSilence is lost.
	feedPull    = 30 * time.Second
	feedBeat    = 5 * time.Second
	feedSilence = 3 * feedBeat
	// feedCloseTimeout bounds the removal of a consumer.
	feedCloseTimeout = 2 * time.Second
)

// feedConsumer is a pull consumer of a whole partition.
type feedConsumer struct {
	log          *store.Store
	stream, name string
	inbox        string
	sub          *nats.Subscription
	in           chan *nats.Msg
	heard        time.Time // when the last message or heartbeat arrived
	asked        int       // messages requested and not received yet
	bytes        int       // size of this request's messages so far
	delivered    uint64    // count of messages so far
}

// feedMessage is a record and its sequence.
type feedMessage struct {
	wire.Stored
	subject string
}

func newFeedConsumer(l *store.Store, info *natsjs.ConsumerInfo) (*feedConsumer, error) {
	c := &feedConsumer{
		log: l, stream: info.Stream, name: info.Name, inbox: l.Conn.NewInbox(), heard: time.Now(),
		in: make(chan *nats.Msg, 2*feedBatch), // room for the server's status messages, too
	}
	sub, err := l.Conn.ChanSubscribe(c.inbox, c.in)
	if err != nil {
		c.remove()
		return nil, fmt.Errorf("jetstream: feed: %w", err)
	}
	c.sub = sub
	return c, nil
}

func (c *feedConsumer) close() {
	c.sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	c.remove()
}

// remove deletes the consumer from the server. If that fails, the server deletes it
// later.
func (c *feedConsumer) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), feedCloseTimeout)
	defer cancel()
	c.log.JS.DeleteConsumer(ctx, c.stream, c.name) //nolint:errcheck // see above
}

// silent reports whether nothing has arrived for longer than the server may be silent.
func (c *feedConsumer) silent() bool { return time.Since(c.heard) > feedSilence }

// next returns the next message, or nil if none arrives within wait.
func (c *feedConsumer) next(ctx context.Context, wait time.Duration) (*feedMessage, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		if c.asked == 0 {
			if err := c.ask(); err != nil {
				return nil, err
			}
		}
		select {
		case m := <-c.in:
			c.heard = time.Now()
			if wire.First(m.Header, wire.HeaderStatus) != "" && len(m.Data) == 0 {
				if err := c.status(m); err != nil {
					return nil, err
				}
				continue
			}
			r, err := c.take(m)
			if err == nil {
				err = c.log.Await(ctx, c.stream, r.Sequence)
			}
			return r, err
		case <-timeout.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-c.log.Closed:
			return nil, eventlog.ErrClosed
		}
	}
}

// ask requests the next messages.
func (c *feedConsumer) ask() error {
	batch := feedBatch
	if c.bytes > feedBytes {
		batch = feedFew
	}
	req, err := json.Marshal(map[string]any{
		"batch": batch, "expires": feedPull.Nanoseconds(), "idle_heartbeat": feedBeat.Nanoseconds(),
	})
	if err != nil {
		return err
	}
	c.asked, c.bytes = batch, 0
	return c.log.Conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+c.stream+"."+c.name, c.inbox, req)
}

// status handles a status message about a request.
func (c *feedConsumer) status(m *nats.Msg) error {
	switch status := wire.First(m.Header, wire.HeaderStatus); status {
	case "100": // a heartbeat
		return nil
	case "404", "408": // the request is finished
		c.asked = 0
		return nil
	default:
		return fmt.Errorf("%w: status %s %s", errFeedLost, status, m.Header.Get("Description"))
	}
}

// take decodes a message. If one before it was lost, the consumer can't be used any more.
func (c *feedConsumer) take(m *nats.Msg) (*feedMessage, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("jetstream: feed: %w", err)
	}
	c.delivered++
	c.bytes += len(m.Data)
	if meta.Sequence.Consumer != c.delivered {
		return nil, fmt.Errorf("%w: message %d came as the %dth", errFeedLost, meta.Sequence.Consumer, c.delivered)
	}
	if c.asked--; c.asked == 0 && meta.NumPending > 0 {
		time.Sleep(feedPause)
	}
	r := wire.StoredAt(m.Subject, meta.Sequence.Stream, meta.Timestamp, m.Header, m.Data)
	return &feedMessage{Stored: r, subject: m.Subject}, nil
}
