package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/integration/testkit"
)

// kills is how often TestKill kills, unless HELIX_KILLS says otherwise.
const kills = 5

// TestKill kills the daemon (SIGKILL) at random moments of runs with
// reasoning, text and tool calls, starts it again and resumes: every run ends
// like one that was left alone, and a client that reconnects with its last id
// sees every surviving chunk once.
func TestKill(t *testing.T) {
	t.Parallel() // most of it is waiting
	n := testkit.Count(t, "HELIX_KILLS", kills)
	rnd := testkit.Random(t)

	w := newWorld(t)
	d := newDaemon(t, "serve", "--config", w.config, "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-unauthenticated")
	d.start()
	began := time.Now()
	want := w.run(t, d, "calm", nil)
	length := time.Since(began)
	t.Logf("a run takes %s", length)

	struck, discarded := 0, 0
	for i := range n {
		session := fmt.Sprintf("killed-%d", i)
		moment := time.Duration(rnd.Int64N(int64(length)))
		got := w.run(t, d, session, func() {
			<-time.After(moment) // the moment is the test's input, not a wait for something
			d.kill()
			d.start()
		})
		require.JSONEq(t, want, got, "killed after %s", moment)
		steps := map[string]int{}
		for _, r := range d.records(session) {
			if steps[r.Type]++; r.Type == "truncated" {
				struck++
			}
		}
		require.Equal(t, steps["step_start"], steps["step_end"]+steps["step_discarded"], "each step ends, killed after %s", moment)
		discarded += steps["step_discarded"]
	}
	t.Logf("%d kills, %d of them left orphans, %d discarded a step", n, struck, discarded)
	w.check(t)
}

// world is what the daemon talks to; it survives the daemon.
type world struct {
	config string

	mu      sync.Mutex
	keyOf   map[string]string // session and call -> idempotency key
	changed []string          // calls whose key changed
}

func newWorld(t *testing.T) *world {
	w := &world{keyOf: map[string]string{}}
	provider := modeltest.Serve(t,
		turn("I think about it for a while, word by word. ", "I will look at two places. ", `{"city": "Paris"}`, `{"city": "Oslo"}`),
		turn("Now the third one is missing, so I look at it too. ", "", `{"city": "Rome"}`),
		turn("", "Paris is warm, Oslo is cold and Rome is in between, as it should be, all of them. "),
	)
	tool := httptest.NewServer(http.HandlerFunc(w.serveTool))
	t.Cleanup(tool.Close)
	w.config = configFile(t, fmt.Sprintf(`
agents:
  walker:
    systemPrompt: You look at cities.
    model: {provider: openai, name: some-model, apiKey: "none", baseURL: %q}
    tools:
      look:
        description: Looks at a city.
        inputSchema: {type: object, properties: {city: {type: string}}, required: [city]}
        http: {url: %q}
`, provider.URL, tool.URL))
	return w
}

// turn is a streamed answer, word by word, with tool calls whose arguments
// come in pieces.
func turn(reasoning, text string, calls ...string) modeltest.Stream {
	var events []string
	add := func(delta, finish string) {
		events = append(events, fmt.Sprintf(`{"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, finish))
	}
	for _, word := range strings.SplitAfter(reasoning, " ") {
		add(fmt.Sprintf(`{"reasoning_content":%q}`, word), "null")
	}
	for _, word := range strings.SplitAfter(text, " ") {
		add(fmt.Sprintf(`{"content":%q}`, word), "null")
	}
	for i, args := range calls {
		add(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":"look","arguments":""}}]}`, i, i), "null")
		for piece := range strings.SplitAfterSeq(args, " ") {
			add(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, i, piece), "null")
		}
	}
	finish := `"stop"`
	if len(calls) > 0 {
		finish = `"tool_calls"`
	}
	add(`{}`, finish)
	events = append(events, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}}`)
	return modeltest.Events(events...).After(2 * time.Millisecond)
}

// serveTool answers slowly enough to be killed in, and changes the state.
func (w *world) serveTool(rw http.ResponseWriter, r *http.Request) {
	var call struct {
		SessionID, ToolCallID string
		Arguments             struct{ City string }
		State                 map[string]any
	}
	raw, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(raw, &call); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	key, name := r.Header.Get("Idempotency-Key"), call.SessionID+"/"+call.ToolCallID
	w.mu.Lock()
	if old, ok := w.keyOf[name]; ok && old != key {
		w.changed = append(w.changed, name)
	}
	w.keyOf[name] = key
	w.mu.Unlock()
	select {
	case <-time.After(20 * time.Millisecond):
	case <-r.Context().Done():
		return
	}
	fmt.Fprintf(rw, `{"result":{"city":%q,"sky":"grey"},"patches":[{"op":"add","path":"/%s","value":"seen"}],"events":[{"name":"looked","data":%q}]}`,
		call.Arguments.City, call.Arguments.City, call.Arguments.City)
}

// run drives a session to its end and returns what must not depend on
// crashes. While it runs, disturb happens; then the run is resumed.
func (w *world) run(t *testing.T, d *daemon, session string, disturb func()) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d.ok("/start", map[string]any{"sessionId": session, "agentType": "walker", "message": "Go."})
	f := follow(ctx, d.url, session)
	if disturb != nil {
		disturb()
		status, answer := d.post("/resume", map[string]any{"sessionId": session})
		if status != http.StatusOK {
			require.Equal(t, "ALREADY_COMPLETED", answer["code"])
		}
	}
	<-f.done
	f.checkAgainst(t, d.records(session))
	_, state := d.get("/sessions/" + session + "/state")
	return outcome(t, state["state"].(map[string]any))
}

// outcome leaves out of a state what a crash may change: times, sequences,
// and the runs that it took.
func outcome(t *testing.T, state map[string]any) string {
	t.Helper()
	out := map[string]any{}
	for _, key := range []string{"status", "streamStatus", "customState", "output", "usage", "stepCount", "turnCount", "parked", "turn"} {
		out[key] = state[key]
	}
	usage := out["usage"].(map[string]any)
	delete(usage, "runs")
	delete(usage, "recorded") // it tells times
	messages := state["messages"].([]any)
	for _, m := range messages {
		delete(m.(map[string]any), "timestamp")
		delete(m.(map[string]any), "sequence")
		if denial, ok := m.(map[string]any)["denial"].(map[string]any); ok {
			delete(denial, "approvalId") // of the run that asked
		}
	}
	out["messages"] = messages
	checkpoints, _ := state["checkpoints"].([]any)
	out["checkpoints"] = len(checkpoints)
	raw, err := json.Marshal(out)
	require.NoError(t, err)
	return string(raw)
}

func (w *world) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.changed, "the idempotency key of a call stays the same")
	require.NotEmpty(t, w.keyOf)
}
