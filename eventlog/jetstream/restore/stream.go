package restore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// chunkBytes is the size of a chunk of a stream's snapshot.
	chunkBytes = 128 << 10
	// chunkTimeout is how long a server may take for one.
	chunkTimeout = 30 * time.Second
)

// Derived streams are made again: of saved folds from the log, of the work list from the
// sessions that a restore finds with work.
var derived = []string{"HELIX_SNAP_", "HELIX_RUNS"}

// Beside returns those of helixd's streams that have data which is not in the log, such
// as files of workspaces and revocations.
func (s State) Beside() (names []string) {
	for _, name := range s.Streams {
		isLog := strings.HasPrefix(name, layout.LogStreams) || strings.HasPrefix(name, layout.SegmentStreams) ||
			name == layout.BlobStream || name == layout.PlacesStream
		if !isLog && !slices.ContainsFunc(derived, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			names = append(names, name)
		}
	}
	return names
}

// CopyStream copies a stream to a deployment that has none of the name, message by
// message with sequence and time, and returns how many messages there are. replicas is
// how many replicas the copy has. Nobody may write to the stream meanwhile.
func CopyStream(ctx context.Context, from, to *nats.Conn, name string, replicas int) (messages uint64, err error) {
	if messages, err = copyStream(ctx, from, to, name, replicas); err != nil {
		return 0, fmt.Errorf("jetstream: copy stream %s: %w", name, err)
	}
	return messages, nil
}

func copyStream(ctx context.Context, from, to *nats.Conn, name string, replicas int) (uint64, error) {
	var source streamAnswer
	if err := ask(ctx, from, "$JS.API.STREAM.INFO."+name, struct{}{}, &source); err != nil {
		return 0, err
	}
	source.Config["num_replicas"] = replicas
	source.Config["compression"] = streams.CompressionOf(replicas)
	// The restore comes first: a snapshot whose chunks nobody takes ends after seconds.
	var begun streamAnswer
	err := link.Settle(ctx, to, func(ctx context.Context) error {
		return ask(ctx, to, "$JS.API.STREAM.RESTORE."+name, map[string]any{"config": source.Config, "state": source.State}, &begun)
	})
	if err != nil {
		return 0, err
	}
	if err := pump(ctx, from, to, name, begun.DeliverSubject); err != nil {
		return 0, err
	}
	var made streamAnswer
	if err := send(ctx, to, begun.DeliverSubject, nil, &made); err != nil {
		return 0, err
	}
	want, got := source.State["messages"], made.State["messages"]
	if n, is := want.(float64); is && want == got {
		return uint64(n), nil
	}
	return 0, fmt.Errorf("the copy has %v messages, not %v", got, want)
}

// pump sends a stream's snapshot to a subject.
func pump(ctx context.Context, from, to *nats.Conn, name, subject string) error {
	inbox := from.NewInbox()
	sub, err := from.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	request := map[string]any{"deliver_subject": inbox, "no_consumers": true, "chunk_size": chunkBytes}
	if err := ask(ctx, from, "$JS.API.STREAM.SNAPSHOT."+name, request, &streamAnswer{}); err != nil {
		return err
	}
	for {
		try, cancel := context.WithTimeout(ctx, chunkTimeout)
		m, err := sub.NextMsgWithContext(try)
		cancel()
		if err != nil {
			return err
		}
		if status := wire.First(m.Header, wire.HeaderStatus); status != "" && status != "204" {
			return fmt.Errorf("the server broke off its snapshot: %s %s", status, wire.First(m.Header, "Description"))
		}
		if len(m.Data) == 0 {
			return nil
		}
		if err := send(ctx, to, subject, m.Data, &streamAnswer{}); err != nil {
			return err
		}
		if m.Reply == "" {
			continue
		}
		if err := m.Respond(nil); err != nil {
			return err
		}
	}
}

// streamAnswer is what answers of JetStream's API about a stream have.
type streamAnswer struct {
	Error          *natsjs.APIError `json:"error"`
	Config         map[string]any   `json:"config"`
	State          map[string]any   `json:"state"`
	DeliverSubject string           `json:"deliver_subject"`
}

func ask(ctx context.Context, nc *nats.Conn, subject string, request any, answer *streamAnswer) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return send(ctx, nc, subject, body, answer)
}

// send makes a request. A server answers a chunk with nothing.
func send(ctx context.Context, nc *nats.Conn, subject string, body []byte, answer *streamAnswer) error {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil || len(m.Data) == 0 {
		return err
	}
	*answer = streamAnswer{}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}
