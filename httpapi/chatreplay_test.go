package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/projector/uimessage/uitest"
)

// TestContentIsInTheSnapshotOrReplayed: with content replay off, the
// snapshot has what has streamed, and a reconnect sends what is new in parts of
// its own.
func TestContentIsInTheSnapshotOrReplayed(t *testing.T) {
	t.Parallel()
	m := slow{[]string{"One ", "two ", "three."}, make(chan struct{})}
	a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}}, func(o *chat.Options) { o.NoContentReplay = true })
	first := a.open("POST", "/chat", says("s", "slow", "go"))
	var uncut uitest.Client
	m.next <- struct{}{}
	at := first.take(&uncut, "One")

	var snap struct {
		Messages []struct {
			ID    string
			Parts []uitest.Part
		}
		StreamSequence uint64
	}
	a.get("/chat/s/snapshot").decode(t, &snap)
	shown := snap.Messages[1]
	require.Equal(t, "msg-1-partial", shown.ID)
	require.Equal(t, uitest.Normal(uncut.Parts), uitest.Normal(shown.Parts))
	require.Equal(t, at, fmt.Sprint(snap.StreamSequence))

	plain := a.open("GET", "/chat/s/stream", "")
	named := a.open("GET", "/chat/s/stream", "", "X-Existing-Message-Id", shown.ID, "X-Resume-From-Sequence", at)
	kept := a.open("GET", "/chat/s/stream", "", "X-Resume-From-Sequence", at)
	again := uncut.Clone()
	m.next <- struct{}{}
	m.next <- struct{}{}
	first.take(&uncut, "[DONE]")
	kept.take(again, "[DONE]")
	require.Equal(t, uncut.Parts, again.Parts, "a client that has kept its parts continues them")
	for id, s := range map[string]*stream{"msg-1": plain, shown.ID: named} {
		var rest uitest.Client
		s.take(&rest, "[DONE]")
		require.Equal(t, id, rest.ID)
		require.Equal(t, []uitest.Part{{"type": "text", "text": "two three."}}, rest.Parts)
		require.True(t, rest.Finished)
	}
	require.Equal(t, http.StatusNoContent, a.get("/chat/s/stream").status)
}

// TestARepeatedRequestGetsAllOfItsAnswer, whether or not content is replayed: its
// client shows no snapshot.
func TestARepeatedRequestGetsAllOfItsAnswer(t *testing.T) {
	t.Parallel()
	m := slow{[]string{"One ", "two."}, make(chan struct{})}
	a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}}, func(o *chat.Options) { o.NoContentReplay = true })
	body := says("s", "slow", "go")
	first := a.open("POST", "/chat", body)
	m.next <- struct{}{}
	first.until("One")
	var client uitest.Client
	again := a.open("POST", "/chat", body)
	m.next <- struct{}{}
	again.take(&client, "[DONE]")
	require.Equal(t, "One two.", client.Parts[1]["text"])
}

// TestCallsOfASnapshotGetTheirResults: with content replay off, a result that comes
// after the reconnect brings its call with it: a result alone ends a client's
// stream.
func TestCallsOfASnapshotGetTheirResults(t *testing.T) {
	t.Parallel()
	may := make(chan struct{})
	tool := agentloop.Tool{Name: "wait", Execute: func(ctx context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) {
		select {
		case <-may:
		case <-ctx.Done():
		}
		return args, ctx.Err()
	}}
	model := scripted.New(saying("Done.", calling("w", "wait", `{"n":1}`)), nil)
	a := newChat(t, []agentloop.Agent{{Name: "waiter", Tools: []agentloop.Tool{tool}, Model: model}},
		func(o *chat.Options) { o.NoContentReplay = true })
	first := a.open("POST", "/chat", says("s", "waiter", "go"))
	first.until("tool-input-available")
	rest := a.open("GET", "/chat/s/stream", "")
	rest.until(`"start"`)
	close(may)
	var client uitest.Client
	rest.take(&client, "[DONE]")
	require.Equal(t, "tool-wait", client.Parts[0]["type"])
	require.Equal(t, "output-available", client.Parts[0]["state"])
	require.Equal(t, map[string]any{"n": 1.0}, client.Parts[0]["input"])
	require.True(t, client.Finished)
}
