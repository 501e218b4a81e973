package httpapi_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/snapshot/backup"
)

// durableAPI is a server that speaks the protocol.
type durableAPI struct{ *testAPI }

func speaking(o *httpapi.Options) { o.Protocols.DurableStreams = true }

func newDurableAPI(t *testing.T, change ...func(*httpapi.Options)) durableAPI {
	t.Helper()
	return durableAPI{newAPI(t, append(change, speaking)...)}
}

// streamAnswer is an answer of the protocol.
type streamAnswer struct {
	status int
	header http.Header
	body   string
}

func (a streamAnswer) next() string { return a.header.Get("Stream-Next-Offset") }

// send sends a request about a stream. Headers are names and values in turn.
func (a durableAPI) send(method, name, body string, headers ...string) streamAnswer {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.ctx(), method, a.http.URL+"/v1/stream/"+name, strings.NewReader(body))
	require.NoError(a.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	require.Equal(a.t, "nosniff", resp.Header.Get("X-Content-Type-Options"), "on every answer")
	return streamAnswer{resp.StatusCode, resp.Header, string(raw)}
}

const plain = "text/plain"

func (a durableAPI) create(name, contentType, body string, headers ...string) streamAnswer {
	a.t.Helper()
	got := a.send("PUT", name, body, append([]string{"Content-Type", contentType}, headers...)...)
	require.Equal(a.t, 201, got.status, got.body)
	return got
}

func producing(id string, epoch, seq int) []string {
	return []string{"Content-Type", plain, "Producer-Id", id, "Producer-Epoch", fmt.Sprint(epoch), "Producer-Seq", fmt.Sprint(seq)}
}

// A server that does not speak the protocol has no such routes.
func TestDurableStreamsAreOff(t *testing.T) {
	t.Parallel()
	a := durableAPI{newAPI(t)}
	require.Equal(t, 404, a.send("PUT", "a", "").status)
}

// Bytes and messages are read as they were appended, from any offset that was given.
func TestDurableReads(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	bytes := []string{"a", "\x00\xff", "ö\r\n ", " b"}
	offsets := []string{a.create("dir/bytes", "application/octet-stream", "").next()}
	for _, b := range bytes {
		got := a.send("POST", "dir/bytes", b, "Content-Type", "application/octet-stream")
		require.Equal(t, 204, got.status, got.body)
		require.Greater(t, got.next(), offsets[len(offsets)-1], "offsets rise as texts")
		offsets = append(offsets, got.next())
	}
	for i, from := range offsets {
		got := a.send("GET", "dir/bytes?offset="+from, "")
		require.Equal(t, 200, got.status)
		require.Equal(t, strings.Join(bytes[i:], ""), got.body)
		require.Equal(t, offsets[len(offsets)-1], got.next())
		require.Equal(t, "true", got.header.Get("Stream-Up-To-Date"))
	}

	// The position alone counts: a sequence only says where to begin to read.
	require.Equal(t, strings.Join(bytes[1:], ""), a.send("GET", "dir/bytes?offset="+offsets[1][:17]+"0000000000000000", "").body)
	require.Equal(t, strings.Join(bytes[1:], ""), a.send("GET", "dir/bytes?offset="+offsets[1][:17]+"9999999999999999", "").body)

	unknown := struct{ io.Reader }{strings.NewReader("chunked")} // net/http can't know its length
	r, err := http.NewRequestWithContext(a.ctx(), "POST", a.http.URL+"/v1/stream/dir/bytes", unknown)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 204, resp.StatusCode)
	require.Equal(t, "chunked", a.send("GET", "dir/bytes?offset="+offsets[len(offsets)-1], "").body)

	a.create("json", "application/json", `[{"a":1},[2]]`)
	require.Equal(t, 204, a.send("POST", "json", "{ \"b\" :\n 9007199254740993 }", "Content-Type", "Application/JSON; charset=utf-8").status)
	require.Equal(t, `[{"a":1},[2],{"b":9007199254740993}]`, a.send("GET", "json", "").body)
	for _, bad := range []string{`[]`, `{`, "\"\xff\""} {
		require.Equal(t, 400, a.send("POST", "json", bad, "Content-Type", "application/json").status, bad)
	}
}

// An answer is bounded, and the next offset continues it.
func TestDurablePages(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	a.create("large", plain, "")
	piece := strings.Repeat("0123456789abcdef", 40<<10)
	for range 4 {
		require.Equal(t, 204, a.send("POST", "large", piece, "Content-Type", plain).status)
	}
	var all strings.Builder
	from, answers := "-1", 0
	for {
		got := a.send("GET", "large?offset="+from, "")
		require.Equal(t, 200, got.status)
		require.LessOrEqual(t, len(got.body), 2<<20)
		all.WriteString(got.body)
		from, answers = got.next(), answers+1
		if got.header.Get("Stream-Up-To-Date") == "true" {
			break
		}
	}
	require.Greater(t, answers, 1)
	require.Equal(t, strings.Repeat(piece, 4), all.String())
	require.Equal(t, 413, a.send("POST", "large", strings.Repeat("x", 9<<20), "Content-Type", plain).status)
}

// A producer's requests are appended once, in order, and a stale epoch never, by another
// server on the same log as well.
func TestDurableProducers(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	b := durableAPI{newAPIOn(t, a.log, nil, speaking)}
	a.create("p", plain, "")
	require.Equal(t, 200, a.send("POST", "p", "0", producing("x", 0, 0)...).status)
	require.Equal(t, 200, b.send("POST", "p", "1", producing("x", 0, 1)...).status)
	for _, on := range []durableAPI{a, b} {
		got := on.send("POST", "p", "0", producing("x", 0, 0)...)
		require.Equal(t, 204, got.status)
		require.Equal(t, "1", got.header.Get("Producer-Seq"), "the highest that was accepted")
		got = on.send("POST", "p", "3", producing("x", 0, 3)...)
		require.Equal(t, 409, got.status)
		require.Equal(t, "2", got.header.Get("Producer-Expected-Seq"))
		require.Equal(t, "3", got.header.Get("Producer-Received-Seq"))
	}
	require.Equal(t, 400, a.send("POST", "p", "2", producing("x", 1, 1)...).status)
	require.Equal(t, 200, a.send("POST", "p", "2", producing("x", 1, 0)...).status)
	got := b.send("POST", "p", "2", producing("x", 0, 2)...)
	require.Equal(t, 403, got.status)
	require.Equal(t, "1", got.header.Get("Producer-Epoch"))
	closing := append(producing("x", 1, 1), "Stream-Closed", "true")
	require.Equal(t, 200, a.send("POST", "p", "end", closing...).status)
	got = b.send("POST", "p", "other", closing...)
	require.Equal(t, 204, got.status)
	require.Equal(t, "true", got.header.Get("Stream-Closed"))
	require.Equal(t, 409, b.send("POST", "p", "more", producing("x", 1, 2)...).status)
	require.Equal(t, "012end", a.send("GET", "p", "").body)
}

// Many writers lose and repeat nothing.
func TestDurableWritersAtOnce(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	a.create("many", "application/json", "")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 10 {
				require.Equal(t, 204, a.send("POST", "many", fmt.Sprintf(`{"w":%d,"i":%d}`, w, i), "Content-Type", "application/json").status)
			}
		})
	}
	wg.Wait()
	var all []struct{ W, I int }
	require.NoError(t, json.Unmarshal([]byte(a.send("GET", "many", "").body), &all))
	require.Len(t, all, 80)
	next := map[int]int{}
	for _, m := range all {
		require.Equal(t, next[m.W], m.I)
		next[m.W]++
	}
}

// frames reads server-sent events of the protocol until the connection ends or enough returns
// true, and returns the data and the last control event.
func (a durableAPI) frames(name string, enough func(data string, last map[string]any) bool) (data string, last map[string]any) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.ctx())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", a.http.URL+"/v1/stream/"+name, nil)
	require.NoError(a.t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	require.Equal(a.t, 200, resp.StatusCode)
	binary := resp.Header.Get("Stream-SSE-Data-Encoding") == "base64"
	event, lines := "", []string(nil)
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		line := in.Text()
		switch {
		case strings.HasPrefix(line, "event: "):
			event = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data:"):
			lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " "))
		case line == "" && event == "data":
			text := strings.Join(lines, "\n")
			if binary {
				raw, err := base64.StdEncoding.DecodeString(text)
				require.NoError(a.t, err)
				text = string(raw)
			}
			data += text
			event, lines = "", nil
		case line == "" && event == "control":
			last = nil
			require.NoError(a.t, json.Unmarshal([]byte(strings.Join(lines, "\n")), &last))
			event, lines = "", nil
			if enough(data, last) {
				return data, last
			}
		}
	}
	return data, last
}

// A reader that is cut off after any event and continues at its offset has each byte once, and
// the end.
func TestDurableReaderIsCutAtEveryEvent(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	for _, contentType := range []string{plain, "application/octet-stream"} {
		name := "cut-" + strings.ReplaceAll(contentType, "/", "-")
		a.create(name, contentType, " first\n")
		go func() {
			for i := range 20 {
				a.send("POST", name, fmt.Sprintf(" %d\n", i), "Content-Type", contentType)
			}
			a.send("POST", name, "last", "Content-Type", contentType, "Stream-Closed", "true")
		}()
		want := " first\n"
		for i := range 20 {
			want += fmt.Sprintf(" %d\n", i)
		}
		got, from := "", "-1"
		for closed := false; !closed; {
			data, last := a.frames(name+"?live=sse&offset="+from, func(data string, last map[string]any) bool { return data != "" })
			got += data
			from = last["streamNextOffset"].(string)
			closed, _ = last["streamClosed"].(bool)
		}
		require.Equal(t, want+"last", got, contentType)
	}
}

// A long poll waits for what comes, and ends with the stream.
func TestDurableLongPoll(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	from := a.create("poll", plain, "").next()
	answers := make(chan streamAnswer, 1)
	go func() { answers <- a.send("GET", "poll?live=long-poll&offset="+from, "") }()
	require.Equal(t, 204, a.send("POST", "poll", "x", "Content-Type", plain).status)
	got := <-answers
	require.Equal(t, 200, got.status)
	require.Equal(t, "x", got.body)
	require.Regexp(t, `^\d+$`, got.header.Get("Stream-Cursor"))
	from = got.next()
	go func() { answers <- a.send("GET", "poll?live=long-poll&offset="+from, "") }()
	require.Equal(t, 204, a.send("POST", "poll", "", "Stream-Closed", "true").status)
	got = <-answers
	require.Equal(t, 204, got.status)
	require.Equal(t, "true", got.header.Get("Stream-Closed"))
	require.Equal(t, from, got.next())
}

// A session is read as a stream of its chunks, also those that were truncated, and is only
// read.
func TestDurableSessions(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	a.append("s/1", text("s/1", "one"), text("s/1", "two"))
	a.append("s/1", factOf("s/1", &eventlog.Truncated{
		Reason: eventlog.ResyncCrashRecovery, AtSequence: 2,
		Ranges: []eventlog.Range{{AgentID: "s/1", From: 1, To: 1 << 40, Scope: eventlog.ScopeContent}}, Base: factBase("s/1"),
	}))
	a.append("s/1", text("s/1", "three"))
	got := a.send("GET", "sessions/s%2F1", "")
	require.Equal(t, 200, got.status, got.body)
	require.Equal(t, "application/json", got.header.Get("Content-Type"))
	var chunks []struct{ Type, Delta string }
	require.NoError(t, json.Unmarshal([]byte(got.body), &chunks))
	require.Len(t, chunks, 3)
	require.Equal(t, "one", chunks[0].Delta)
	require.Equal(t, "three", chunks[2].Delta)
	require.Equal(t, "[]", a.send("GET", "sessions/s%2F1?offset="+got.next(), "").body)
	data, _ := a.frames("sessions/s%2F1?live=sse&offset=-1", func(_ string, last map[string]any) bool { return last["upToDate"] == true })
	require.Equal(t, 3, strings.Count(data, `"delta"`))
	for _, method := range []string{"PUT", "POST", "DELETE"} {
		require.Equal(t, 405, a.send(method, "sessions/s%2F1", "x", "Content-Type", "application/json").status, method)
	}
	require.Equal(t, 404, a.send("GET", "sessions/nobody", "").status)
	require.Equal(t, 400, a.send("PUT", "sessions/a/b", "").status, "the name is reserved")
	require.Equal(t, 400, a.send("PUT", "__ds/subscriptions/a", "").status, "the name is the protocol's")
}

// A stream's log is no session: no route reaches it as one, and no list has it.
func TestDurableStreamsAreNoSessions(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	a.create("secret", plain, "x")
	for _, path := range []string{"/sessions/~stream%2Fsecret", "/sessions/~stream%2Fsecret/records", "/sse?sessionId=~stream/secret", "/v1/stream/sessions/~stream%2Fsecret"} {
		require.Equal(t, 400, a.get(path).status, path)
	}
	require.NotContains(t, a.get("/sessions").body, "secret")
}

// Callers reach only the streams of their user and tenant, and fork no others.
func TestDurableOwners(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	of := func(c auth.Caller) durableAPI {
		return durableAPI{newAPIOn(t, log, nil, speaking, func(o *httpapi.Options) {
			o.Identify = func(*http.Request) (auth.Caller, error) { return c, nil }
		})}
	}
	ada, bob := of(auth.Caller{Name: "a", User: "ada", Tenant: "acme"}), of(auth.Caller{Name: "b", User: "bob", Tenant: "evil"})
	ada.create("mine", plain, "x")
	require.Equal(t, "x", ada.send("GET", "mine", "").body)
	for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
		require.Equal(t, 404, bob.send(method, "mine", "y", "Content-Type", plain).status, method)
	}
	require.Equal(t, 403, bob.send("PUT", "mine", "", "Content-Type", plain).status)
	require.Equal(t, 404, bob.send("PUT", "theirs", "", "Content-Type", plain, "Stream-Forked-From", "/v1/stream/mine").status)
	require.Equal(t, "x", ada.send("GET", "mine", "").body)
}

// Authorization comes before anything else is looked at.
func TestDurableAuthorization(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	a := newDurableAPI(t, func(o *httpapi.Options) {
		o.Auth = func(_ *http.Request, op auth.Operation, session string) error {
			asked <- string(op) + " " + session
			return auth.ErrForbidden
		}
	})
	for method, op := range map[string]string{"PUT": "append", "POST": "append", "GET": "stream", "HEAD": "stream", "DELETE": "erase"} {
		require.Equal(t, 403, a.send(method, "a/b?offset=,", "", "Producer-Id", "").status, method)
		require.Equal(t, op+" ~stream/a/b", <-asked)
	}
}

// A stream with the longest name can be forked, also if its address escapes each byte of it.
func TestAStreamWithALongNameIsForked(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	for i, name := range []string{
		strings.Repeat("n", eventlog.MaxDurableName), url.PathEscape(strings.Repeat("語", eventlog.MaxDurableName/len("語"))),
	} {
		a.create(name, plain, "hello")
		fork := fmt.Sprint("fork", i)
		a.create(fork, plain, "", "Stream-Forked-From", "/v1/stream/"+name)
		require.Equal(t, "hello", a.send("GET", fork, "").body)
		require.Equal(t, 400, a.send("PUT", "no", "", "Stream-Forked-From", "/v1/stream/"+name+"nnn").status)
	}
}

// A fork has what its source had at its offset; its source remains for it when it is deleted,
// and goes with the last fork.
func TestDurableForks(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	middle := a.create("src", plain, "hello").next()
	a.send("POST", "src", " world", "Content-Type", plain)
	from := []string{"Stream-Forked-From", "/v1/stream/src"}
	a.create("f1", plain, "!", append(from, "Stream-Fork-Offset", middle)...)
	a.create("f2", plain, "", append(from, "Stream-Fork-Offset", middle, "Stream-Fork-Sub-Offset", "3")...)
	a.create("f3", plain, "", "Stream-Forked-From", "/v1/stream/f2", "Stream-Fork-Offset", middle)
	a.send("POST", "f2", "ld", "Content-Type", plain)
	require.Equal(t, "hello!", a.send("GET", "f1", "").body)
	require.Equal(t, "hello wold", a.send("GET", "f2", "").body)
	require.Equal(t, "hello", a.send("GET", "f3", "").body)
	require.Equal(t, "old", a.send("GET", "f2?offset="+middle, "").body[2:])
	require.Equal(t, 200, a.send("PUT", "f2", "", append(from, "Stream-Fork-Offset", middle, "Stream-Fork-Sub-Offset", "3")...).status)
	require.Equal(t, 409, a.send("PUT", "f2", "", append(from, "Stream-Fork-Offset", middle, "Stream-Fork-Sub-Offset", "2")...).status)
	require.Equal(t, 400, a.send("PUT", "f4", "", append(from, "Stream-Fork-Offset", middle, "Stream-Fork-Sub-Offset", "7")...).status)

	require.Equal(t, 204, a.send("DELETE", "src", "").status)
	require.Equal(t, 410, a.send("GET", "src", "").status)
	require.Equal(t, 409, a.send("PUT", "src", "", "Content-Type", plain).status)
	require.Equal(t, "hello!", a.send("GET", "f1", "").body)
	require.Equal(t, 204, a.send("DELETE", "f1", "").status)
	require.Equal(t, 204, a.send("DELETE", "f2", "").status)
	require.Equal(t, "hello", a.send("GET", "f3", "").body, "through two deleted streams")
	require.Equal(t, 204, a.send("DELETE", "f3", "").status)
	for _, name := range []string{"src", "f1", "f2", "f3"} {
		require.Equal(t, 404, a.send("GET", name, "").status, name)
		_, err := a.log.Head(a.ctx(), eventlog.DurableLogID(name))
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "every byte of %s is gone", name)
	}
	a.create("src", plain, "again")
	require.Equal(t, "again", a.send("GET", "src", "").body)
}

// A stream that has expired is gone at once, its name is free, and a sweep erases it.
func TestDurableExpiry(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	soon := time.Now().Add(200 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	a.create("short", plain, "x", "Stream-Expires-At", soon)
	a.create("swept", plain, "x", "Stream-Expires-At", soon)
	require.Eventually(t, func() bool { return a.send("GET", "short", "").status == 404 }, within, 10*time.Millisecond)
	require.Equal(t, 404, a.send("POST", "swept", "y", "Content-Type", plain).status)
	a.create("short", "application/json", `["new"]`)
	require.Equal(t, `["new"]`, a.send("GET", "short", "").body)
	done, err := a.loop.Admin.Sweep(a.ctx(), admin.SweepOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, done.Detected)
	_, err = a.log.Head(a.ctx(), eventlog.DurableLogID("swept"))
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// Bad requests change nothing.
func TestDurableRefusals(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	a.create("r", plain, "x")
	long := strings.Repeat("x", 300)
	for _, headers := range [][]string{
		{"Stream-TTL", "01"}, {"Stream-TTL", "-1"}, {"Stream-TTL", "1", "Stream-Expires-At", "2030-01-01T00:00:00Z"},
		{"Stream-Expires-At", "tomorrow"}, {"Stream-Fork-Offset", "1"}, {"Stream-Forked-From", "/elsewhere"}, {"Content-Type", "nonsense"},
		{"Content-Type", "text/" + long}, {"Stream-Forked-From", "/v1/stream/sessions/a"},
	} {
		require.Equal(t, 400, a.send("PUT", "new", "", headers...).status, "%v", headers)
	}
	for _, headers := range [][]string{
		{"Producer-Id", "a"}, append(producing("a", 0, 0), "Producer-Seq", "1"), producing("", 0, 0), producing(long, 0, 0), producing("a", -1, 0),
		{"Content-Type", plain, "Stream-Seq", long},
	} {
		require.Equal(t, 400, a.send("POST", "r", "y", headers...).status, "%v", headers)
	}
	for _, query := range []string{"offset=", "offset=1", "offset=-2", "live=sse", "live=never&offset=-1", "offset=9999999999999999_9999999999999999"} {
		require.Equal(t, 400, a.send("GET", "r?"+query, "").status, query)
	}
	require.Equal(t, 404, a.send("GET", "new", "").status)
	require.Equal(t, 400, a.send("PUT", long, "").status)
	require.Equal(t, "x", a.send("GET", "r", "").body)
}

// A backup has streams as it has sessions.
func TestDurableBackup(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	middle := a.create("kept", plain, "one").next()
	require.Equal(t, 200, a.send("POST", "kept", "two", producing("p", 0, 0)...).status)
	got := a.get("/backup")
	require.Equal(t, 200, got.status)
	var sessions []string
	_, _, err := backup.Read(t.Context(), strings.NewReader(got.body), backup.Visitor{
		Session: func(session string, _ uint64, _ iter.Seq2[eventlog.Copied, error]) error {
			sessions = append(sessions, session)
			return nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, []string{eventlog.DurableLogID("kept")}, sessions)
	require.Equal(t, "two", a.send("GET", "kept?offset="+middle, "").body)
}
