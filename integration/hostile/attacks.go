//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// attack is one thing that the attacker does with its own rights. It returns an
// error if it succeeds.
type attack struct {
	name, about string
	run         func(*world, context.Context) error
}

var attacks []attack

func init() { // they name themselves in the usage
	attacks = []attack{
		{"ids", "another's ids, disguised, on every route", (*world).impersonate},
		{"timing", "what exists, by how long an answer takes", (*world).timing},
		{"patches", "a small patch that is much work to fold", (*world).patches},
		{"users", "another user's memories and sessions", (*world).users},
		{"bodies", "large bodies for sessions of others, and many at once", (*world).bodies},
		{"compare", "large states that are compared", (*world).compare},
		{"hosts", "other names for the daemon's address", (*world).hosts},
		{"search", "many searches in much text", (*world).search},
		{"sessions", "as many sessions and forks as there can be", (*world).floodSessions},
		{"connections", "connections that say nothing", (*world).connections},
		{"streams", "as many streams as there can be", (*world).streams},
		{"garbage", "bytes that mean nothing, on every route", (*world).garbage},
	}
}

func attackNames() (names []string) {
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}

// mine sends a request of the attacker's to one of its sessions.
func (w *world) mine(ctx context.Context, method, path, body string) (answer, error) {
	u, err := url.Parse(path)
	if err != nil {
		return answer{}, err
	}
	return w.ask(ctx, request{method, u.EscapedPath(), u.RawQuery, body})
}

// patchChunk is a chunk with operations on the state.
func patchChunk(session string, operations ...string) string {
	return fmt.Sprintf(`{"type":"state_patch","agentId":%q,"agentType":"x","step":0,"timestamp":1,"patches":[%s]}`, session, strings.Join(operations, ","))
}

// patches: what can't be folded within the limits is refused, or its session is
// set aside; the session still answers, and can be erased.
func (w *world) patches(ctx context.Context) error {
	const id = attackerPrefix + "patches"
	elements := "[0" + strings.Repeat(",0", 1_900_000) + "]"
	for i, body := range []string{
		"[" + patchChunk(id, `{"op":"add","path":"/a","value":`+elements+`}`) + "]",
		"[" + patchChunk(id, slices.Repeat([]string{`{"op":"add","path":"/a/0","value":1}`}, 20_000)...) + "]",
	} {
		a, err := w.mine(ctx, http.MethodPost, "/sessions/"+id+"/chunks", body)
		if err != nil {
			return err
		}
		w.note("append %d: %d", i+1, a.status)
	}
	for range 50 {
		if _, err := w.mine(ctx, http.MethodPost, "/sessions/"+id+"/chunks", "["+patchChunk(id, `{"op":"add","path":"/a/0","value":1}`)+"]"); err != nil {
			return err
		}
	}
	for range 3 {
		began := time.Now()
		a, err := w.mine(ctx, http.MethodGet, "/status?sessionId="+id, "")
		if err != nil {
			return fmt.Errorf("GET /status: %w", err)
		}
		if took := time.Since(began); took > statusWithin {
			return fmt.Errorf("GET /status took %s (%d)", took, a.status)
		}
	}
	a, err := w.mine(ctx, http.MethodDelete, "/sessions/"+id, "")
	if err != nil || a.status >= 400 && a.status != http.StatusNotFound {
		return fmt.Errorf("the session can't be erased: %d %s %w", a.status, a.body, err)
	}
	return nil
}

// statusWithin is how soon a session's state has to be there, whatever was done
// to it.
const statusWithin = 5 * time.Second

// many sends requests from so many callers at a time until the time is up, and
// counts their statuses.
func (w *world) many(ctx context.Context, callers int, span time.Duration, q func(n int) request) (map[int]int, error) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var mu sync.Mutex
	statuses := map[int]int{}
	var n atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				a, err := w.send(ctx, q(int(n.Add(1))))
				mu.Lock()
				if err != nil {
					a.status = 0 // refused before it was read, or cut off by the time
				}
				statuses[a.status]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for status := range statuses {
		if status >= 500 && status != http.StatusServiceUnavailable {
			return statuses, fmt.Errorf("the server failed: %v", statuses)
		}
	}
	return statuses, nil
}

// users: a body, a listing and a memory of another user are refused.
func (w *world) users(ctx context.Context) error {
	for _, q := range []request{
		{http.MethodPost, "/start", "", `{"sessionId":"` + attackerPrefix + `user","agentType":"speaker","message":"hi","userId":"` + victimUser + `"}`},
		{http.MethodPost, "/chat", "", `{"id":"` + attackerPrefix + `user2","userId":"` + victimUser + `","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`},
		{http.MethodGet, "/memories", "scope=user&id=" + victimUser, ""},
		{http.MethodDelete, "/memories", "scope=user&id=" + victimUser, ""},
		{http.MethodPost, "/memories", "", `{"scope":"user","id":"` + victimUser + `","content":"forged"}`},
	} {
		a, err := w.ask(ctx, q)
		if err != nil {
			return err
		}
		if a.status != http.StatusForbidden {
			return fmt.Errorf("%s %s %s: %d %.200s", q.method, q.path, q.body, a.status, a.body)
		}
	}
	return nil
}

// bodies: a body of a caller who may not is not read, and those of one who may
// are bounded together.
func (w *world) bodies(ctx context.Context) error {
	messages := strings.Repeat(`{"role":"user"},`, 250_000) // just within api.MaxBody
	large := "[" + strings.TrimSuffix(strings.Repeat(`{"type":"text_delta","agentId":"`+attackerPrefix+`large","agentType":"x","step":0,"timestamp":1,"delta":"`+strings.Repeat("x", 1<<10)+`"},`, 20_000), ",") + "]"
	statuses, err := w.many(ctx, 10, w.each, func(n int) request {
		if n%2 == 0 {
			return request{http.MethodPost, "/sessions/" + attackerPrefix + "large/chunks", "", large}
		}
		return request{http.MethodPost, "/chat", "", `{"id":"` + w.secret(0) + `","messages":[` + messages + `{"role":"user"}]}`}
	})
	w.note("statuses %v", statuses)
	return err
}

// compare: two large states are compared, by several callers at once.
func (w *world) compare(ctx context.Context) error {
	for i := range 2 {
		id := fmt.Sprint(attackerPrefix, "state-", i)
		var values strings.Builder
		for n := range 200_000 {
			fmt.Fprintf(&values, `"k%d":%d,`, n, n*(i+1))
		}
		a, err := w.mine(ctx, http.MethodPost, "/sessions/"+id+"/chunks", "["+patchChunk(id, `{"op":"add","path":"/large","value":{`+strings.TrimSuffix(values.String(), ",")+`}}`)+"]")
		if err != nil {
			return err
		}
		w.note("state %d: %d", i+1, a.status)
	}
	statuses, err := w.many(ctx, 4, w.each, func(int) request {
		return request{http.MethodGet, "/compare", "a=" + attackerPrefix + "state-0&b=" + attackerPrefix + "state-1", ""}
	})
	w.note("statuses %v", statuses)
	return err
}

// hosts: a request under another name, such as one from a page of another site, gets
// nothing, from any listener.
func (w *world) hosts(ctx context.Context) error {
	for _, host := range []string{"", "evil.example"} {
		for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/debug/pprof/", "/sessions", "/status?sessionId=" + w.secret(0)} {
			if err := w.stranger(ctx, host, path); err != nil {
				return err
			}
		}
	}
	handshake := "GET / HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	address, err := w.websocket()
	if err != nil {
		return err
	}
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write([]byte(handshake)); err != nil {
		return err
	}
	var got [256]byte
	n, _ := c.Read(got[:])
	if strings.Contains(string(got[:n]), " 101 ") {
		return fmt.Errorf("a WebSocket under another name is let in: %s", got[:n])
	}
	return nil
}

// stranger asks without a token, as a page of a host; "": under the daemon's own
// name. It must learn nothing, and as a page nothing at all.
func (w *world) stranger(ctx context.Context, host, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.node.URL+path, nil)
	if err != nil {
		return err
	}
	if host != "" {
		req.Host = host
		req.Header.Set("Origin", "http://"+host)
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	told := path != "/" && slices.ContainsFunc([]string{"speaker", "version", "fsync", victimPrefix}, func(word string) bool { return strings.Contains(string(body), word) })
	if told || host != "" && resp.StatusCode != http.StatusForbidden {
		return fmt.Errorf("GET %s without a token, Host %q: %d %.200s", path, host, resp.StatusCode, body)
	}
	return nil
}

// search: much text, and many searches in it.
func (w *world) search(ctx context.Context) error {
	statuses := map[int]int{}
	for s := range 10 {
		id := fmt.Sprint(attackerPrefix, "said-", s)
		var chunks []string
		for n := range 1000 {
			raw, err := json.Marshal(map[string]any{"type": "text_delta", "agentId": id, "agentType": "x", "step": 0, "timestamp": 1, "delta": fmt.Sprint("word", n, " the same words again and again ")})
			if err != nil {
				return err
			}
			chunks = append(chunks, string(raw))
		}
		a, err := w.mine(ctx, http.MethodPost, "/sessions/"+id+"/chunks", "["+strings.Join(chunks, ",")+"]")
		if err != nil {
			return err
		}
		statuses[a.status]++
	}
	w.note("written %v", statuses)
	statuses, err := w.many(ctx, 8, w.each, func(int) request {
		return request{http.MethodGet, "/search", "q=the+same+words+again", ""}
	})
	w.note("searches %v", statuses)
	return err
}

// floodSessions: sessions and forks are made until there may be no more.
func (w *world) floodSessions(ctx context.Context) error {
	statuses, err := w.many(ctx, 16, w.each, func(n int) request {
		if n%4 == 0 {
			return request{http.MethodPost, "/sessions/" + ownSession + "/fork", "", fmt.Sprintf(`{"atSequence":1,"sessionId":"%sfork-%d"}`, attackerPrefix, n)}
		}
		id := fmt.Sprint(attackerPrefix, "flood-", n)
		return request{http.MethodPost, "/sessions/" + id + "/chunks", "", `[{"type":"text_delta","agentId":"` + id + `","agentType":"x","step":0,"timestamp":1,"delta":"x"}]`}
	})
	w.note("statuses %v", statuses)
	if err == nil && statuses[http.StatusTooManyRequests] == 0 {
		err = fmt.Errorf("nobody says that it is enough: %v", statuses)
	}
	return err
}

// connections: those that say nothing do not keep others out.
func (w *world) connections(ctx context.Context) error {
	base, err := url.Parse(w.node.URL)
	if err != nil {
		return err
	}
	for range 400 {
		c, err := net.DialTimeout("tcp", base.Host, 2*time.Second)
		if err != nil {
			break // refused: as it should be
		}
		defer c.Close()
	}
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.node.URL+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := fresh.Do(req)
	if err != nil {
		return fmt.Errorf("a new caller is kept out: %w", err)
	}
	resp.Body.Close()
	return deployment.Sleep(ctx, time.Second)
}

// streams: as many as are let in are held.
func (w *world) streams(ctx context.Context) error {
	held, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	statuses := map[int]int{}
	for range 400 {
		req, err := http.NewRequestWithContext(held, http.MethodGet, w.node.URL+"/sse?sessionId="+ownSession, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+attackerToken)
		resp, err := w.http.Do(req)
		if err != nil {
			statuses[0]++
			continue
		}
		statuses[resp.StatusCode]++
		all.Go(func() {
			<-held.Done()
			resp.Body.Close()
		})
	}
	w.note("statuses %v", statuses)
	if statuses[http.StatusTooManyRequests] == 0 {
		return fmt.Errorf("nobody says that it is enough: %v", statuses)
	}
	return deployment.Sleep(ctx, w.each/2)
}
