//go:build linux

package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// limited is a daemon with one session of numbered chunks, whose process can be limited
// while it runs.
type limited struct {
	*daemon
	http  *http.Client // keeps one connection
	acked []string
	sent  int
}

func newLimited(t *testing.T) *limited {
	t.Helper()
	l := &limited{daemon: newDaemon(t, "serve", "--data-dir", t.TempDir(), "--allow-unauthenticated")}
	l.http = &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: time.Minute}
	t.Cleanup(l.http.CloseIdleConnections)
	l.start()
	return l
}

// limit sets a limit of the process, and returns what lifts it.
func (l *limited) limit(resource int, to uint64) (lift func()) {
	l.t.Helper()
	pid := l.cmd.Process.Pid
	var before unix.Rlimit
	require.NoError(l.t, unix.Prlimit(pid, resource, nil, &before))
	require.NoError(l.t, unix.Prlimit(pid, resource, &unix.Rlimit{Cur: to, Max: before.Max}, nil))
	return func() { require.NoError(l.t, unix.Prlimit(pid, resource, &before, nil)) }
}

// append sends the next chunk and returns the status, 0 if there was no answer, and the code.
func (l *limited) append() (int, string) {
	l.sent++
	delta := fmt.Sprint("chunk-", l.sent, ";")
	body := `[{"type":"text_delta","agentId":"p","agentType":"x","timestamp":1,"step":1,"delta":"` + delta + `"}]`
	resp, err := l.http.Post(l.url+"/sessions/p/chunks", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	var answer struct{ Code string }
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	if resp.StatusCode == http.StatusOK {
		l.acked = append(l.acked, delta)
	}
	return resp.StatusCode, answer.Code
}

// kept checks that every acknowledged chunk is there once.
func (l *limited) kept() {
	l.t.Helper()
	records := l.raw("/sessions/p/records")
	for _, delta := range l.acked {
		require.Equal(l.t, 1, strings.Count(string(records), `"`+delta+`"`), delta)
	}
}

// A process that may open no more files accepts no new connection, and an append, which
// needs a file for its sync, waits. It continues by itself when it may open files again.
// limits.connections keeps clients from causing that.
func TestANodeWithoutFiles(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	l := newLimited(t)
	status, code := l.append()
	require.Equal(t, http.StatusOK, status, code)
	// The limit is of a file's number: below 3 none ever becomes free, whatever closes.
	lift := l.limit(unix.RLIMIT_NOFILE, 3)
	waits := make(chan string, 1)
	go func() {
		status, code := l.append()
		waits <- fmt.Sprint(status, " ", code)
	}()
	impatient := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	_, err := impatient.Get(l.url + "/healthz")
	require.Error(t, err, "a new connection waits")
	lift()
	answer := <-waits
	t.Logf("the append that waited: %s", answer)
	require.Contains(t, []string{"200 ", "503 UNAVAILABLE"}, answer)
	l.becomes(http.StatusOK, "/readyz")
	status, code = l.append()
	require.Equal(t, http.StatusOK, status, "it needs no restart: %s", code)
	l.kept()
}

// With a soft limit that is far too low (GOMEMLIMIT) a daemon collects its garbage more
// often and serves all the same.
func TestLittleMemoryIsSlowOnly(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	l := &limited{daemon: newDaemon(t, "serve", "--data-dir", t.TempDir(), "--allow-unauthenticated"), http: client}
	l.env = []string{"GOMEMLIMIT=24MiB"}
	l.start()
	for range 100 {
		status, code := l.append()
		require.Equal(t, http.StatusOK, status, code)
	}
	l.kept()
}

// Beyond a hard limit the process ends, as by SIGKILL of the kernel's: the next one has
// everything that was acknowledged.
func TestMemoryRunsOut(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	l := newLimited(t)
	for range 20 {
		status, code := l.append()
		require.Equal(t, http.StatusOK, status, code)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.cmd.Process.Pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmData:")
	data, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	l.limit(unix.RLIMIT_DATA, data<<10+24<<20)
	ended := make(chan error, 1)
	go func() { ended <- l.cmd.Wait() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	large := `[{"type":"text_delta","agentId":"x","agentType":"x","timestamp":1,"step":1,"delta":"` + strings.Repeat("large ", 8<<20/6) + `"}]`
	var senders sync.WaitGroup
	for i := range 8 {
		senders.Go(func() {
			for ctx.Err() == nil {
				if resp, err := ask(ctx, "POST", fmt.Sprintf("%s/sessions/large%d/chunks", l.url, i), large); err == nil {
					resp.Body.Close()
				}
			}
		})
	}
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the process has not run out of memory")
	}
	cancel()
	senders.Wait()
	require.Contains(t, l.logs.String(), "out of memory")
	l.start()
	l.kept()
	code, answer := l.append()
	require.Equal(t, http.StatusOK, code, answer)
}

// slowDisk is a server on a disk whose syncs take their time. As in the server, one sync is
// under way at a time, and all that come meanwhile share the next.
type slowDisk struct {
	*embed.Server
	each  time.Duration
	mu    sync.Mutex
	next  *sharedSync
	syncs atomic.Int32
	busy  sync.Mutex
}

type sharedSync struct {
	done chan struct{}
	err  error
}

func (s *slowDisk) Sync(ctx context.Context) error {
	s.mu.Lock()
	r := s.next
	if r == nil {
		r = &sharedSync{done: make(chan struct{})}
		s.next = r
		go s.round(context.WithoutCancel(ctx), r)
	}
	s.mu.Unlock()
	<-r.done
	return r.err
}

func (s *slowDisk) round(ctx context.Context, r *sharedSync) {
	s.busy.Lock()
	defer s.busy.Unlock()
	s.mu.Lock()
	s.next = nil
	s.syncs.Add(1)
	s.mu.Unlock()
	time.Sleep(s.each)
	r.err = s.Server.Sync(ctx)
	close(r.done)
}

// On a slow disk tokens that come meanwhile share a record, and writers share a sync: the
// delay of an append grows, what is written in a second hardly falls, and nothing is lost.
func TestASlowDisk(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	srv, nc := embedtest.Start(t, embed.Options{GroupSync: true})
	disk := &slowDisk{Server: srv, each: 150 * time.Millisecond}
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: disk})
	const words = 400
	var text strings.Builder
	for i := range words {
		fmt.Fprint(&text, "word", i, " ")
	}
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "teller", Model: scripted.New([]scripted.Turn{{Text: text.String()}}, &scripted.Options{Delay: 2 * time.Millisecond}),
	}}, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	began := time.Now()
	run, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "teller", Messages: []agentloop.Input{{Content: "go"}}})
	require.NoError(t, err)

	var producers sync.WaitGroup
	for i := range 32 {
		producers.Go(func() {
			id := fmt.Sprint("p", i)
			head := uint64(0)
			for range 5 {
				next, err := log.Append(t.Context(), id, head, []eventlog.Entry{logtest.Text(id, "chunk")})
				if err != nil {
					t.Error(err)
					return
				}
				head = next
			}
		})
	}
	producers.Wait()
	result, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "completed", string(result.Status))
	took := time.Since(began)
	var got strings.Builder
	records := 0
	for r, err := range eventlog.Chunks(eventlog.Effective(t.Context(), log, "s", 0, 0)) {
		require.NoError(t, err)
		if c, ok := r.Chunk.(*eventlog.TextDelta); ok {
			records++
			got.WriteString(c.Delta)
		}
	}
	require.Equal(t, strings.TrimSpace(text.String()), strings.TrimSpace(got.String()))
	t.Logf("%d words in %d records, 160 appends of others, %d syncs of %s in %s", words, records, disk.syncs.Load(), disk.each, took)
	require.Less(t, records, words/4, "tokens share records")
	require.Less(t, int(disk.syncs.Load()), 80, "writers share syncs")
}
