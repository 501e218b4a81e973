package integration_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/integration/evidence"
)

// TestPlainNATSSubscribersSeeTheStream: any NATS client that subscribes to helix.live.>
// gets the chunks of the SSE stream with the same sequences, and the facts, distinguished
// by the header H.
func TestPlainNATSSubscribersSeeTheStream(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	w := newWorld(t)
	d := newDaemon(t, "serve", "--config", w.config, "--data-dir", filepath.Join(t.TempDir(), "data"),
		"--allow-unauthenticated", "--nats-listen", address)
	d.start()
	nc, err := nats.Connect("nats://"+address, nats.Timeout(time.Minute))
	require.NoError(t, err)
	defer nc.Close()
	messages := make(chan *nats.Msg, 4096)
	_, err = nc.ChanSubscribe("helix.live.>", messages)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	const session = "a b/é.*"
	d.ok("/start", map[string]any{"sessionId": session, "agentType": "walker", "message": "Go."})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f := follow(ctx, d.url, session)
	<-f.done
	records := d.records(session)
	f.checkAgainst(t, records)

	var chunks []evidence.Shown
	var got []eventlog.Record
	for len(got) < len(records) {
		select {
		case m := <-messages:
			require.Equal(t, "helix.live.a%20b%2F%C3%A9%2E%2A", m.Subject)
			seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
			require.NoError(t, err)
			r, _, err := jetstream.LiveRecord(m)
			require.NoError(t, err)
			require.Equal(t, seq, r.Sequence)
			got = append(got, r)
			// As clients in other languages tell them apart.
			fact := strings.HasPrefix(m.Header.Get("H"), "f.")
			require.Equal(t, r.Kind == eventlog.KindFact, fact)
			if !fact {
				chunks = append(chunks, evidence.Shown{Sequence: seq, Hash: evidence.Hash(m.Data)})
			}
		case <-ctx.Done():
			require.Fail(t, "a subscriber misses records", "has %d of %d", len(got), len(records))
		}
	}
	require.Equal(t, f.Seen, chunks, "the chunks of the SSE stream, with the same sequences")
	for i, r := range records {
		require.Equal(t, r.Sequence, got[i].Sequence)
		require.Equal(t, r.Kind, got[i].Kind)
		require.Equal(t, r.Type, got[i].Type)
		require.JSONEq(t, string(r.Payload), string(got[i].Payload))
	}

	// What is not allowed outside: writing, and JetStream's API.
	failed := make(chan error, 1)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		select {
		case failed <- err:
		default:
		}
	})
	head := records[len(records)-1].Sequence
	require.NoError(t, nc.Publish("helix.log.0.a%20b%2F%C3%A9%2E%2A", []byte(`{"type":"text_delta"}`)))
	require.ErrorContains(t, <-failed, "ermissions")
	_, state := d.get("/status?sessionId=a%20b%2F%C3%A9.*")
	require.Equal(t, json.Number(strconv.FormatUint(head, 10)).String(), strconv.FormatFloat(state["latestSequence"].(float64), 'f', -1, 64))
}
