package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// backupWorld is a model whose answers to "live" wait, and an agent whose tool
// wants an approval.
type backupWorld struct {
	config string
	asked  chan struct{} // closed when "live" was asked for
	free   chan struct{} // closed: it is answered
	once   sync.Once
}

func newBackupWorld(t *testing.T) *backupWorld {
	w := &backupWorld{asked: make(chan struct{}), free: make(chan struct{})}
	model := httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(model.Close)
	tool := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"result":{"deleted":true}}`)
	}))
	t.Cleanup(tool.Close)
	w.config = configFile(t, fmt.Sprintf(`
agents:
  worker:
    model: {provider: openai, name: some-model, apiKey: "none", baseURL: %q}
    tools:
      delete:
        description: Deletes.
        inputSchema: {type: object}
        requireApproval: true
        http: {url: %q}
  scribe:
    workspace: {provider: objects}
    model:
      provider: scripted
      script:
        - toolCalls: [{name: workspace_write_file, arguments: {path: plan.txt, content: "walls, roof"}}]
        - text: That is the plan.
  secretive:
    workspace: {provider: objects}
    model:
      provider: scripted
      script:
        - toolCalls: [{name: workspace_write_file, arguments: {path: secret.txt, content: "a secret of hers"}}]
        - text: It is written.
`, model.URL, tool.URL))
	return w
}

// answer is the model's.
func (w *backupWorld) answer(rw http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	rw.Header().Set("Content-Type", "text/event-stream")
	say := func(delta, finish string) {
		fmt.Fprintf(rw, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		rw.(http.Flusher).Flush()
	}
	switch {
	case bytes.Contains(raw, []byte(`"approve"`)) && !bytes.Contains(raw, []byte(`"tool"`)):
		say(`{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"delete","arguments":"{}"}}]}`, "null")
		say(`{}`, `"tool_calls"`)
	case bytes.Contains(raw, []byte(`"live"`)):
		say(`{"content":"Half "}`, "null")
		w.once.Do(func() { close(w.asked) })
		select {
		case <-w.free:
		case <-r.Context().Done():
			return
		}
		fallthrough
	default:
		say(`{"content":"done."}`, "null")
		say(`{}`, `"stop"`)
	}
	fmt.Fprint(rw, "data: [DONE]\n\n")
}

// start starts a run and waits for its status.
func (w *backupWorld) start(d *daemon, session, message, until string) {
	d.t.Helper()
	d.ok("/start", map[string]any{"sessionId": session, "agentType": "worker", "message": message})
	d.waitFor(session, until)
}

// trimmedSession makes a session of which retention has taken the beginning, in
// the data folder of a daemon that is stopped.
func trimmedSession(t *testing.T, dataDir, session string) (floor uint64) {
	t.Helper()
	nc, stop := serverOf(t, dataDir)
	defer stop()
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	defer log.Close()
	folds, err := foldsjs.Open(t.Context(), nc, layout.Hashed(1), 1)
	require.NoError(t, err)
	head := uint64(0)
	for i := range 20 {
		entry := logtest.Fact(session, &fact.UserMessage{
			Content: fmt.Sprint("message ", i), Base: fact.Base{SessionID: session, Timestamp: 1},
		})
		head, err = eventlog.AppendOnce(t.Context(), log, session, fmt.Sprint("w", i), head, []eventlog.Entry{entry})
		require.NoError(t, err)
		require.NoError(t, log.Seal(t.Context(), session))
	}
	_, err = log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	done, err := snapshot.New(log, &snapshot.StoreOptions{Folds: folds}).Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.NotZero(t, done.Dropped[session])
	return done.Dropped[session]
}

// load appends to sessions until it is stopped.
type load struct {
	mu     sync.Mutex
	last   map[string]uint64 // acknowledged
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func startLoad(t *testing.T, d *daemon, sessions int) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{last: map[string]uint64{}, cancel: cancel}
	t.Cleanup(l.stop)
	for i := range sessions {
		session := fmt.Sprint("load-", i)
		l.wg.Go(func() {
			for ctx.Err() == nil {
				if last := appendTexts(ctx, d.url, session, "one ", "two "); last > 0 {
					l.mu.Lock()
					l.last[session] = last
					l.mu.Unlock()
				}
			}
		})
	}
	require.Eventually(t, func() bool { return len(l.acknowledged()) == sessions }, time.Minute, time.Millisecond)
	return l
}

func (l *load) acknowledged() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.last)
}

func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
}

// textLines are chunks of text as a producer sends them.
func textLines(session string, texts []string) string {
	var lines strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&lines, `{"type":"text_delta","agentId":%q,"agentType":"a","timestamp":1,"step":1,"delta":%q}`+"\n", session, text)
	}
	return lines.String()
}

// appendTexts returns the last sequence, 0 if it is not known.
func appendTexts(ctx context.Context, base, session string, texts ...string) uint64 {
	resp, err := ask(ctx, http.MethodPost, base+"/sessions/"+session+"/chunks", textLines(session, texts), "Content-Type", "application/x-ndjson")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	var answer struct{ LastSequence uint64 }
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&answer) != nil {
		return 0
	}
	return answer.LastSequence
}

// held is what a backup holds.
type held struct {
	ends    []uint64
	floors  map[string]uint64
	records map[string][]eventlog.Record
}

func readBackup(t *testing.T, path string) held {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	h := held{floors: map[string]uint64{}, records: map[string][]eventlog.Record{}}
	_, _, err = backup.Read(t.Context(), file, backup.Visitor{
		Begin: func(header backup.Header) error { h.ends = header.Ends; return nil },
		Session: func(session string, floor uint64, records iter.Seq2[eventlog.Copied, error]) error {
			h.floors[session] = floor
			for r, err := range records {
				if err != nil {
					return err
				}
				h.records[session] = append(h.records[session], r.Record)
			}
			return nil
		},
	})
	require.NoError(t, err)
	return h
}

// refusedCommand runs a command that must fail and returns what it prints.
func refusedCommand(t *testing.T, code int, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t), args...).CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, code, exit.ExitCode(), "%s", out)
	return strings.TrimSpace(string(out))
}
