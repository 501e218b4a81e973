package httpapi_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/chat"
)

// A stream ends when its caller's token expires, and says so: what a browser has
// to read where there is such a thing as an event close, and a comment everywhere.
func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	left := 300 * time.Millisecond // when a request is identified
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Chat = &chat.Options{}
		o.Identify = func(*http.Request) (auth.Caller, error) { return auth.Caller{Expires: time.Now().Add(left)}, nil }
		o.Auth = func(*http.Request, auth.Operation, string) error { return nil }
	})
	a.append("s", created("s"), text("s", "x"))
	const comment = ": TOKEN_EXPIRED: "
	const closed = "event: close\ndata: {\"type\":\"close\",\"code\":\"TOKEN_EXPIRED\"}\n\n"
	for target, closes := range map[string]bool{
		"/sse?sessionId=s": true, "/sessions/s/stream": false, "/sessions/s/records?follow=1": false,
	} {
		got := a.get(target)
		for got.status == 401 || got.status == 200 && !strings.Contains(got.body, `"x"`) { // it expired before that: the machine is slow
			left *= 2
			require.Less(t, left, within, target)
			got = a.get(target)
		}
		require.Equal(t, 200, got.status, target)
		if strings.Contains(target, "records") {
			require.NotContains(t, got.body, "TOKEN_EXPIRED", "lines have no comments")
			continue
		}
		require.Contains(t, got.body, comment, target)
		require.Equal(t, closes, strings.HasSuffix(got.body, closed), "%s: %s", target, got.body)
	}
	// A replay that pauses between two chunks, which are a minute apart.
	began := time.Now()
	for i, e := range []eventlog.Entry{created("slow"), text("slow", "1"), text("slow", "2")} {
		e.Origin = eventlog.Origin{Sequence: uint64(i + 1), Time: began.Add(time.Duration(i) * time.Minute)}
		a.append("slow", e)
	}
	require.Contains(t, a.get("/sessions/slow/replay?speed=0.01&maxPause=600000").body, closed)

	// One that has expired on the way is refused.
	left = -time.Second
	a.get("/sse?sessionId=s").failed(t, 401, api.CodeUnauthorized)
	require.Equal(t, 200, a.get("/sessions/s").status, "who is let in is for the authenticator to say")
}

// waitingLog answers reads when their context ends.
type waitingLog struct{ eventlog.Log }

func (l waitingLog) Read(ctx context.Context, _ string, _, _ uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		<-ctx.Done()
		yield(eventlog.Record{}, fmt.Errorf("read: %w", ctx.Err()))
	}
}

// A token that expires before its stream has begun is refused as one that has expired.
func TestTokensThatExpireWhileAStreamOpens(t *testing.T) {
	t.Parallel()
	log := memory.New()
	a := newAPIOn(t, waitingLog{log}, nil, func(o *httpapi.Options) {
		o.Chat = &chat.Options{}
		o.Identify = func(*http.Request) (auth.Caller, error) {
			return auth.Caller{Expires: time.Now().Add(20 * time.Millisecond)}, nil
		}
		o.Auth = func(*http.Request, auth.Operation, string) error { return nil }
	})
	a.append("s", created("s"), text("s", "x"))
	for _, target := range []string{"/sse?sessionId=s", "/sessions/s/stream", "/sessions/s/records?follow=1", "/sessions/s/replay", "/chat/s/stream"} {
		a.get(target).failed(t, 401, api.CodeUnauthorized)
	}
}

// A right to subscribe ends with its caller's token.
func TestSubscriptionsEndWithTheirToken(t *testing.T) {
	var expires time.Time
	var asked []time.Duration
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Identify = func(*http.Request) (auth.Caller, error) { return auth.Caller{Expires: expires}, nil }
		o.Subscribe = func(_ context.Context, _ string, ttl time.Duration) (api.Subscription, error) {
			asked = append(asked, ttl)
			if ttl == 0 {
				ttl = time.Hour
			}
			return api.Subscription{ExpiresAt: time.Now().Add(ttl)}, nil
		}
	})
	a.append("s", created("s"))
	expires = time.Now().Add(10 * time.Minute)
	require.Equal(t, 201, a.post("/sessions/s/subscriptions", "{}").status)
	require.Len(t, asked, 2)
	require.LessOrEqual(t, asked[1], 10*time.Minute)
	require.Greater(t, asked[1], 5*time.Minute)
	asked, expires = nil, time.Time{}
	require.Equal(t, 201, a.post("/sessions/s/subscriptions", "{}").status)
	require.Len(t, asked, 1)
	expires = time.Now().Add(time.Millisecond)
	a.post("/sessions/s/subscriptions", "{}").failed(t, 401, api.CodeUnauthorized)
}

// A ticket opens the stream that it was made for, for anybody who has it, until its
// minute is finished.
func TestTickets(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withUsers)
	a.finishedOf("ann", "s")
	a.finishedOf("ann", "t")
	ticketOf := func(target string) string {
		t.Helper()
		got := a.post(target, `{}`, bearer("ann")...)
		require.Equal(t, 201, got.status, got.body)
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
		var ticket api.Ticket
		got.decode(t, &ticket)
		require.WithinDuration(t, time.Now().Add(api.TicketTTL), ticket.ExpiresAt, within)
		return ticket.Ticket
	}
	stream, chat := ticketOf("/sessions/s/tickets"), ticketOf("/chat/s/tickets")
	changed := "A" + stream[1:]
	if changed == stream {
		changed = "B" + stream[1:]
	}
	for _, target := range []string{"/sse?sessionId=s&ticket=", "/sessions/s/stream?ticket=", "/sessions/s/replay?speed=0&ticket="} {
		require.Contains(t, a.get(target+stream).body, "classified of s", target)
		for _, bad := range []string{chat, "x", "", stream[:len(stream)-2], stream + "AA", changed} {
			a.get(target+bad).failed(t, 401, api.CodeUnauthorized)
		}
	}
	require.Equal(t, 204, a.get("/chat/s/stream?ticket="+chat).status)
	a.get("/chat/s/stream?ticket="+stream).failed(t, 401, api.CodeUnauthorized)
	for _, target := range []string{
		"/sse?sessionId=t&ticket=", "/sessions/t/stream?ticket=", "/sessions/s/records?ticket=", "/status?sessionId=s&ticket=", "/chat/s/snapshot?ticket=",
	} {
		a.get(target+stream).failed(t, 401, api.CodeUnauthorized)
		a.get(target+chat).failed(t, 401, api.CodeUnauthorized)
	}

	// Who may not hear a session gets no ticket, and a caller's own token counts.
	a.post("/sessions/s/tickets", `{}`, bearer("bob")...).failed(t, 404, api.CodeNotFound)
	a.post("/sessions/s/tickets", `{}`).failed(t, 401, api.CodeUnauthorized)
	a.post("/sessions/none/tickets", `{}`, bearer("ann")...).failed(t, 404, api.CodeNotFound)
	a.get("/sse?sessionId=s&ticket="+stream, bearer("bob")...).failed(t, 404, api.CodeNotFound)

	// A token that is taken back takes its tickets with it.
	tokens := []auth.Token{{Token: "other", Operations: []string{"*"}, Sessions: []string{"*"}}}
	require.NoError(t, a.srv.Reconfigure(auth.BearerTokens(tokens), auth.TokenCallers(tokens), nil))
	a.get("/sse?sessionId=s&ticket="+stream).failed(t, 401, api.CodeUnauthorized)
}

// Nodes with the same key take each other's tickets, until they expire.
func TestTicketsOfOtherNodes(t *testing.T) {
	log := memory.New()
	node := func(key string) *testAPI {
		return newAPIOn(t, log, nil, withUsers, func(o *httpapi.Options) { o.TicketKey = []byte(key) })
	}
	one, two, other := node(strings.Repeat("k", 32)), node(strings.Repeat("k", 32)), node(strings.Repeat("o", 32))
	one.finishedOf("ann", "s")
	var ticket api.Ticket
	one.post("/sessions/s/tickets", `{}`, bearer("ann")...).decode(t, &ticket)
	require.Equal(t, 200, two.get("/sse?sessionId=s&ticket="+ticket.Ticket).status)
	other.get("/sse?sessionId=s&ticket="+ticket.Ticket).failed(t, 401, api.CodeUnauthorized)
	httpapi.SetClock(two.srv, func() time.Time { return ticket.ExpiresAt })
	two.get("/sse?sessionId=s&ticket="+ticket.Ticket).failed(t, 401, api.CodeUnauthorized)

	_, err := httpapi.New(httpapi.Options{Log: log, Loop: one.loop, AllowUnauthenticated: true, TicketKey: []byte("short")})
	require.ErrorContains(t, err, "at least 32 bytes")
}
