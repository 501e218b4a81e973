package httpapi_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// wanted is what Subscribe was called with.
type wanted struct {
	session string
	ttl     time.Duration
}

// subscribing makes rights that no server would take.
func subscribing(seen *[]wanted) func(context.Context, string, time.Duration) (api.Subscription, error) {
	return func(_ context.Context, session string, ttl time.Duration) (api.Subscription, error) {
		if seen != nil {
			*seen = append(*seen, wanted{session, ttl})
		}
		return api.Subscription{
			Subject: "helix.live.x", URLs: api.SubscriptionURLs{NATS: []string{"nats://h:4222"}},
			JWT: "the jwt", Seed: "SU-the-seed", Creds: "both", ExpiresAt: time.Unix(9, 0).UTC(),
		}, nil
	}
}

// unsubscribing notes whose rights it is to revoke.
func unsubscribing(seen *[]string) func(context.Context, string) error {
	return func(_ context.Context, session string) error {
		if seen != nil {
			*seen = append(*seen, session)
		}
		return nil
	}
}

func TestUnsubscribe(t *testing.T) {
	var seen []string
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Unsubscribe = unsubscribing(&seen)
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "stream", Operations: []string{"stream", "status"}, Sessions: []string{"*"}},
			{Token: "records", Operations: []string{"records"}, Sessions: []string{"a/b *", "nobody"}},
		})
	})
	for _, id := range []string{"s", "a/b *"} {
		a.append(id, text(id, "hi"))
	}
	got := a.request("DELETE", "/sessions/a%2Fb%20%2A/subscriptions", "", bearer("records")...)
	require.Equal(t, 200, got.status, got.body)
	require.JSONEq(t, `{"sessionId":"a/b *","revoked":true}`, got.body)
	a.request("DELETE", "/sessions/s/subscriptions", "", bearer("records")...).failed(t, 403, api.CodeUnauthorized)
	a.request("DELETE", "/sessions/s/subscriptions", "", bearer("stream")...).failed(t, 403, api.CodeUnauthorized)
	a.request("DELETE", "/sessions/nobody/subscriptions", "", bearer("records")...).failed(t, 404, api.CodeNotFound)
	require.Equal(t, []string{"a/b *"}, seen, "what is refused revokes nothing")
}

func TestNoRevocation(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Unsubscribe = nil })
	a.append("s", text("s", "hi"))
	got := a.request("DELETE", "/sessions/s/subscriptions", "")
	got.failed(t, 501, api.CodeNotImplemented)
	require.Contains(t, got.body, "nsc revocations", "it says who can revoke the rights")
}

// A session that is erased while a right is made: the right would be to the next
// session of the id.
func TestASubscriptionBesideAnErasure(t *testing.T) {
	log := memory.New()
	make := subscribing(nil)
	a := newAPIOn(t, log, nil, func(o *httpapi.Options) {
		o.Subscribe = func(ctx context.Context, session string, ttl time.Duration) (api.Subscription, error) {
			_, err := log.Erase(ctx, session)
			require.NoError(t, err)
			return make(ctx, session, ttl)
		}
	})
	a.append("s", text("s", "hi"))
	a.post("/sessions/s/subscriptions", `{}`).failed(t, 404, api.CodeNotFound)
}

func TestSubscriptions(t *testing.T) {
	var seen []wanted
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Subscribe = subscribing(&seen) })
	for _, id := range []string{"s", "a/b *"} {
		a.append(id, text(id, "hi"))
	}
	got := a.post("/sessions/s/subscriptions", `{"ttl":"30m"}`)
	require.Equal(t, 201, got.status, got.body)
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	require.JSONEq(t, `{"subject":"helix.live.x","urls":{"nats":["nats://h:4222"],"websocket":[]},`+
		`"jwt":"the jwt","seed":"SU-the-seed","creds":"both","expiresAt":"1970-01-01T00:00:09Z"}`, got.body)
	for _, body := range []string{"", "{}", `{"ttl":"1s"}`, `{"ttl":"24h"}`} {
		target := "/sessions/a%2Fb%20%2A/subscriptions"
		if body == "" {
			got = a.request("POST", target, "", "Content-Length", "0")
		} else {
			got = a.post(target, body)
		}
		require.Equal(t, 201, got.status, got.body)
	}
	require.Equal(t, []wanted{{"s", 30 * time.Minute}, {"a/b *", 0}, {"a/b *", 0}, {"a/b *", time.Second}, {"a/b *", 24 * time.Hour}}, seen)
	require.NotContains(t, a.logs.String(), "SU-the-seed")

	for _, body := range []string{`{"ttl":"0s"}`, `{"ttl":"999ms"}`, `{"ttl":"24h1ns"}`, `{"ttl":"-1h"}`, `{"ttl":60}`, `{"ttl":""}`, `{"ttl":"x"}`, `{"ttl":null}`, `[]`, `{`} {
		a.post("/sessions/s/subscriptions", body).failed(t, 400, api.CodeInvalidRequest)
	}
	a.post("/sessions/nobody/subscriptions", `{}`).failed(t, 404, api.CodeNotFound)
	require.Len(t, seen, 5, "what is refused makes no right")
}

// A child hears nobody: its records are on its root's subject, which is another's right.
func TestSubscriptionsOfAChild(t *testing.T) {
	t.Parallel()
	var seen []wanted
	a := newAPIOn(t, newLog(t), waitingAgents(), func(o *httpapi.Options) { o.Subscribe = subscribing(&seen) })
	a.begin("p", "parent")
	require.Equal(t, 201, a.post("/sessions/p/subscriptions", `{}`).status)
	a.post("/sessions/p-sub-task/subscriptions", `{}`).failed(t, 404, api.CodeNotFound)
	require.Equal(t, []wanted{{"p", 0}}, seen)
}

// Who may follow a session's stream may not hear its facts.
func TestSubscriptionsNeedTheRecords(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "stream", Operations: []string{"stream", "status"}, Sessions: []string{"*"}},
			{Token: "records", Operations: []string{"records"}, Sessions: []string{"s"}},
		})
	})
	a.append("s", text("s", "hi"))
	a.post("/sessions/s/subscriptions", `{}`, bearer("stream")...).failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, 201, a.post("/sessions/s/subscriptions", `{}`, bearer("records")...).status)
}

func TestNoSubscriptions(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Subscribe = nil })
	a.append("s", text("s", "hi"))
	a.post("/sessions/s/subscriptions", `{}`).failed(t, 501, api.CodeNotImplemented)
}
