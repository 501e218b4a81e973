package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/auth/authtest"
	"github.com/helixd/helixd/httpapi/chat"
)

// withUsers has callers who may use all sessions: ann and bob for themselves, desk
// for any user, lead for any as one of red, and plain for none.
func withUsers(o *httpapi.Options) {
	all := []string{"*"}
	tokens := []auth.Token{
		{Token: "ann", Name: "ann's token", Operations: all, Sessions: all, User: "ann", Tenant: "red"},
		{Token: "bob", Name: "bob's token", Operations: all, Sessions: all, User: "bob", Tenant: "blue"},
		{Token: "desk", Name: "desk's token", Operations: []string{"*", "act-as"}, Sessions: all, User: "desk"},
		{Token: "lead", Name: "lead's token", Operations: []string{"*", "act-as"}, Sessions: all, Tenant: "red"},
		{Token: "plain", Name: "plain's token", Operations: all, Sessions: all},
	}
	o.Auth, o.Identify = auth.BearerTokens(tokens), auth.TokenCallers(tokens)
	o.Chat, o.Memories = &chat.Options{}, remembering(o.Log)
}

// tenants are those of the callers that withUsers has.
var tenants = map[string]string{"ann": "red", "bob": "blue"}

// finishedOf is a session of a user whose stream has ended.
func (a *testAPI) finishedOf(user, id string) {
	a.t.Helper()
	a.finishedIn(tenants[user], user, id)
}

func (a *testAPI) finishedIn(tenant, user, id string) {
	a.t.Helper()
	a.append(id, factOf(id, &fact.SessionCreated{
		AgentType: "writer", State: json.RawMessage(`{"n":1}`), UserID: user, Tenant: tenant, Base: factBase(id),
	}), text(id, classified(id)), ended(id, `"`+classified(id)+`"`))
}

func (a *testAPI) userOf(id string) string {
	a.t.Helper()
	var s api.Summary
	a.get("/sessions/"+id, bearer("plain")...).decode(a.t, &s)
	return s.UserID
}

// A session whose state can't be read is nobody's: a caller with a user learns as little
// of it as of one that does not exist.
func TestUnreadableSessionsAreNobodys(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]error{"damaged": eventlog.ErrDamaged, "trimmed": &eventlog.TrimmedError{Cursor: 1, Floor: 2}} {
		t.Run(name, func(t *testing.T) {
			log := &failing{Log: memory.New(), err: broken}
			a := newAPIOn(t, log, nil, withUsers)
			a.append("s", created("s"))
			for _, target := range []string{"/sessions/%s", "/sse?sessionId=%s", "/sessions/%s/records", "/sessions/%s/state"} {
				a.get(fmt.Sprintf(target, "s"), bearer("ann")...).failed(t, 404, api.CodeNotFound)
				there, missing := a.get(fmt.Sprintf(target, "s"), bearer("ann")...), a.get(fmt.Sprintf(target, "t"), bearer("ann")...)
				var one, other api.ErrorBody
				there.decode(t, &one)
				missing.decode(t, &other)
				one.RequestID, other.RequestID = "", ""
				require.Equal(t, other, one, target)
			}
			a.post("/start", `{"sessionId":"s","agentType":"a","message":"go"}`, bearer("ann")...).failed(t, 403, api.CodeUnauthorized)
			require.Contains(t, a.logs.String(), `msg="session can't be read" session=s`)
			require.NotEqual(t, 404, a.get("/sessions/s", bearer("plain")...).status, "an operator sees what is wrong")

			log.err = eventlog.ErrIncomplete // may succeed later
			a.get("/sessions/s", bearer("ann")...).failed(t, 500, api.CodeInternalError)
		})
	}
}

// A user of the same name in another tenant is another one.
func TestCallersOfTenants(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		all := []string{"*"}
		tokens := []auth.Token{
			{Token: "red", Operations: all, Sessions: all, User: "ann", Tenant: "red"},
			{Token: "blue", Operations: all, Sessions: all, User: "ann", Tenant: "blue"},
		}
		o.Auth, o.Identify = auth.BearerTokens(tokens), auth.TokenCallers(tokens)
	})
	a.append("s", factOf("s", &fact.SessionCreated{AgentType: "writer", UserID: "ann", Tenant: "red", Base: factBase("s")}))
	a.append("old", factOf("old", &fact.SessionCreated{AgentType: "writer", UserID: "ann", Base: factBase("old")}))
	require.Equal(t, 200, a.get("/sessions/s", bearer("red")...).status)
	a.get("/sessions/s", bearer("blue")...).failed(t, 404, api.CodeNotFound)
	a.get("/sessions/old", bearer("blue")...).failed(t, 404, api.CodeNotFound) // from before there were tenants
}

// A caller with a user or a tenant uses its own sessions by every route; those of a tenant
// are of all its users.
func TestCallersOwnSessions(t *testing.T) {
	t.Parallel()
	for caller, with := range map[string]func(*httpapi.Options){"ann": withUsers, "red": withTeams} {
		t.Run(caller, func(t *testing.T) {
			a := newAPIOn(t, newLog(t), []agentloop.Agent{writer()}, with, func(o *httpapi.Options) { o.ReadModels = foldedRows{o.Log} })
			eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
				id := "s/" + rt.Method + rt.Pattern
				a.finishedIn("red", "ann", id)
				got := a.request(rt.Method, c.target(rt, id), c.bodyFor(t, id, "fork/"+id), bearer(caller)...)
				if c.everybodys || strings.HasSuffix(rt.Pattern, "/import") {
					got.failed(t, 403, api.CodeUnauthorized)
					return
				}
				require.Equal(t, c.status, got.status, got.body)
			})
		})
	}
}

// For a caller with a user or a tenant, a session of another one, or of none, is answered as
// one that does not exist; an id that is taken can't be used for a new one.
func TestCallersOfOthers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		caller, user, free string // whose mine, and free, are
		with               func(*httpapi.Options)
	}{{"bob", "bob", "", withUsers}, {"blue", "ann", "ann", withTeams}} {
		t.Run(tc.caller, func(t *testing.T) {
			a := newAPIOn(t, memory.New(), []agentloop.Agent{writer()}, tc.with, withReadModels(t))
			a.finishedIn("red", "ann", "theirs")
			a.finishedIn("", tc.free, "free")
			before := a.contents()
			eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
				call := func(id string) answer {
					got := a.request(rt.Method, c.target(rt, id), c.bodyFor(t, id, "fork"), bearer(tc.caller)...)
					require.NotContains(t, got.body, "classified")
					return got
				}
				if rt.NamesIn == "" {
					require.NotContains(t, call("").body, "theirs")
					return
				}
				create := []string{"/start", "/chat", "/sessions/{id}/chunks", "/sessions/{id}/import"}
				for _, other := range []string{"theirs", "free"} {
					got := call(other)
					if slices.Contains(create, rt.Pattern) {
						got.failed(t, 403, api.CodeUnauthorized)
						continue
					}
					absent := call("none")
					require.Equal(t, absent.status, got.status)
					if rt.Pattern == "/chat/{id}/stream" {
						require.Equal(t, 204, got.status)
						require.Empty(t, got.body)
						continue
					}
					require.Equal(t, absent.failed(t, 404, api.CodeNotFound), got.failed(t, 404, api.CodeNotFound))
				}
			})
			require.Equal(t, before, a.contents())
			a.finishedIn("blue", tc.user, "mine")
			for _, both := range []string{"a=mine&b=theirs", "a=theirs&b=mine"} {
				a.get("/compare?"+both, bearer(tc.caller)...).failed(t, 404, api.CodeNotFound)
			}
			a.post("/sessions/mine/fork", `{"sessionId":"theirs"}`, bearer(tc.caller)...).failed(t, 403, api.CodeUnauthorized)

			// Others are limited by their sessions alone.
			for _, token := range []string{"desk", "plain"} {
				for _, id := range []string{"theirs", "free"} {
					require.Equal(t, 200, a.get("/sessions/"+id, bearer(token)...).status)
				}
			}
		})
	}
}

// The user of a new session, and of a message, is the caller's.
func TestCallersUser(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), []agentloop.Agent{{Name: "writer", Model: scripted.New([]scripted.Turn{{Text: "hello"}}, nil)}}, withUsers)
	requests := map[string]func(id, more string) (target, body string){
		"start": func(id, more string) (string, string) {
			return "/start", fmt.Sprintf(`{"sessionId":%q,"agentType":"writer","message":"hi"%s}`, id, more)
		},
		"chat": func(id, more string) (string, string) {
			return "/chat", fmt.Sprintf(`{"id":%q,"messages":[{"id":"m-%s","role":"user","parts":[{"type":"text","text":"hi"}]}]%s}`, id, id, more)
		},
	}
	for name, of := range requests {
		for i, tc := range []struct {
			token, more, user string // user "": refused
		}{
			{"ann", "", "ann"},
			{"ann", `,"userId":"ann"`, "ann"},
			{"ann", `,"userId":"bob"`, ""},
			{"desk", "", "desk"},
			{"desk", `,"userId":"bob"`, "bob"},
			{"plain", `,"userId":"bob"`, "bob"},
		} {
			id := fmt.Sprintf("%s-%d", name, i)
			target, body := of(id, tc.more)
			got := a.post(target, body, bearer(tc.token)...)
			if tc.user == "" {
				got.failed(t, 403, api.CodeUserMismatch)
				_, err := a.log.Head(a.ctx(), id)
				require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
				continue
			}
			require.Equal(t, 200, got.status, got.body)
			require.Equal(t, tc.user, a.userOf(id))
		}
	}

	a.finishedOf("ann", "s")
	a.post("/sessions/s/messages", `{"message":"hi","userId":"bob"}`, bearer("ann")...).failed(t, 403, api.CodeUserMismatch)
	a.post("/sessions/s/messages", `{"message":"hi","userId":"bob"}`, bearer("desk")...).failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, 200, a.post("/sessions/s/messages", `{"message":"hi"}`, bearer("desk")...).status)
}

// A producer that is bound to a user begins sessions of this user.
func TestCallersChunks(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withUsers)
	body := strings.ReplaceAll(chunksBody, "SESSION", `"s"`)
	once := func(token string, headers ...string) answer {
		return a.post("/sessions/s/chunks", body, append(headers, bearer(token)...)...)
	}
	first := once("ann", "Idempotency-Key", "k", "Helix-Expected-Sequence", "0").appended(t)
	require.Equal(t, 1, first.Count)
	require.Equal(t, first, once("ann", "Idempotency-Key", "k", "Helix-Expected-Sequence", "0").appended(t), "repeated")
	require.Equal(t, "ann", a.userOf("s"))
	require.Equal(t, []string{"more"}, a.texts("s"))
	once("bob").failed(t, 403, api.CodeUnauthorized)
	once("ann").appended(t)
	require.Equal(t, []string{"more", "more"}, a.texts("s"))
	require.Equal(t, 200, a.get("/sessions/s", bearer("ann")...).status)
}

// Listings are of the caller's user.
func TestCallersListings(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, rows bool, change ...func(*httpapi.Options)) {
		a := newAPIOn(t, memory.New(), nil, append(change, withUsers)...)
		for _, user := range []string{"ann", "bob", ""} {
			a.finishedOf(user, "of-"+user)
		}
		targets := []string{"/sessions?"}
		if rows {
			targets = append(targets, "/runs?", "/search?q=classified&", "/usage?", "/parked?")
		}
		for _, target := range targets {
			for _, query := range []string{"", "userId=ann"} {
				if query != "" && target == "/parked?" {
					continue
				}
				got := a.get(target+query, bearer("ann")...).done(t)
				require.NotContains(t, got.body, `"of-bob"`)
				require.NotContains(t, got.body, `"of-"`)
				require.Equal(t, target == "/sessions?", strings.Contains(got.body, `"of-ann"`), target)
			}
			if target != "/parked?" {
				a.get(target+"userId=bob", bearer("ann")...).failed(t, 403, api.CodeUserMismatch)
				require.NotContains(t, a.get(target+"userId=bob", bearer("desk")...).done(t).body, `"of-ann"`)
			}
		}
		var page api.Page[api.Summary]
		a.get("/sessions", bearer("desk")...).decode(t, &page)
		require.Equal(t, 3, page.Total)
	}
	t.Run("folds", func(t *testing.T) { test(t, false) })
	t.Run("rows", func(t *testing.T) { test(t, true, withReadModels(t)) })
}

// Records that can't be used are listed to the user of their session only.
func TestCallersParked(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withReadModels(t), withUsers)
	for _, user := range []string{"ann", "bob"} {
		a.finishedOf(user, "of-"+user)
		a.append("of-"+user, factOf("of-"+user, &fact.ToolResult{RunID: "r", StepID: "s", ToolCallID: "c", ToolName: "t", Result: json.RawMessage("1"), Base: factBase("of-" + user)}))
	}
	var page api.Page[struct{ SessionID string }]
	a.get("/parked", bearer("plain")...).decode(t, &page)
	require.Equal(t, 2, page.Total)
	a.get("/parked", bearer("bob")...).decode(t, &page)
	require.Equal(t, 1, page.Total)
	require.Equal(t, "of-bob", page.Items[0].SessionID)
}

// A caller with a user reaches the memories of this user and of its sessions.
func TestCallersMemories(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, withUsers)
	a.finishedOf("ann", "hers")
	for _, scope := range []string{`"user","id":"ann"`, `"session","id":"hers"`} {
		a.post("/memories", `{"scope":`+scope+`,"content":"tea"}`, bearer("ann")...).done(t)
	}
	for query, code := range map[string]api.Code{
		"scope=user&id=ann": api.CodeUserMismatch, "scope=agent&id=writer": api.CodeUnauthorized, "scope=session&id=hers": api.CodeNotFound,
	} {
		status := map[bool]int{true: 404, false: 403}[code == api.CodeNotFound]
		a.get("/memories?"+query, bearer("bob")...).failed(t, status, code)
		a.request("DELETE", "/memories?"+query, "", bearer("bob")...).failed(t, status, code)
		a.request("DELETE", "/memories/m?"+query, "", bearer("bob")...).failed(t, status, code)
	}
	a.post("/memories", `{"scope":"user","id":"ann","content":"forged"}`, bearer("bob")...).failed(t, 403, api.CodeUserMismatch)
	require.Contains(t, a.get("/memories?scope=user&id=ann", bearer("ann")...).done(t).body, `"tea"`)
	require.Contains(t, a.get("/memories?scope=user&id=ann&tenant=red", bearer("desk")...).done(t).body, `"tea"`)
	a.request("DELETE", "/memories?scope=user&id=ann", "", bearer("ann")...).done(t)
}

// A request is identified once, before anything is decided about it.
func TestIdentifyOnce(t *testing.T) {
	var calls int
	var seen []auth.Caller
	who := auth.Caller{Name: "n", Subject: "s", Tenant: "t", Expires: time.Unix(1, 0)}
	var err error
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Identify = func(*http.Request) (auth.Caller, error) { calls++; return who, err }
		o.Auth = func(r *http.Request, _ auth.Operation, _ string) error {
			seen = append(seen, auth.CallerOf(r.Context()))
			return nil
		}
	})
	for range 3 {
		id := fmt.Sprint("s", len(seen))
		a.append(id, created(id))
	}
	require.Equal(t, 200, a.get("/sessions").status)
	require.Equal(t, 1, calls)
	require.Greater(t, len(seen), 1, "each session is asked about")
	for _, c := range seen {
		require.Equal(t, who, c)
	}
	seen = nil
	for failure, status := range map[error]int{auth.ErrUnauthorized: 401, errors.New("keys can't be read"): 500} {
		err = failure
		require.Equal(t, status, a.get("/sessions").status)
		require.Equal(t, 200, a.get("/healthz").status)
	}
	require.Empty(t, seen)
}

// The user and the tenant of a JWT are in claims, and tokens without them are
// refused.
func TestJWTCallers(t *testing.T) {
	key := authtest.NewEd25519(t)
	j, err := auth.NewJWT(auth.JWTOptions{
		JWKS: authtest.KeySet(t, authtest.Public(key, "k", "")), UserIDClaim: "sub", TenantClaim: "org", Now: func() time.Time { return authtest.Now },
	})
	require.NoError(t, err)
	identify := func(changes authtest.Claims) (auth.Caller, error) {
		r, err := http.NewRequest("GET", "/", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+authtest.Signed(t, jose.EdDSA, key, "k", authtest.GoodClaims().With(authtest.Claims{"sub": "ann", "org": "red"}).With(changes)))
		require.Equal(t, errors.Is(j.Authenticate(r, "status", "s"), auth.ErrUnauthorized), func() bool { _, err := j.Identify(r); return err != nil }())
		return j.Identify(r)
	}
	c, err := identify(nil)
	require.NoError(t, err)
	require.Equal(t, "ann", c.User)
	require.Equal(t, "ann", c.Subject)
	require.Equal(t, "red", c.Tenant)
	require.False(t, c.ActAs, "a glob does not grant it")
	require.False(t, c.Expires.IsZero())
	c, err = identify(authtest.Claims{"sub": nil, "helix_operations": "* act-as"})
	require.NoError(t, err)
	require.Equal(t, "", c.User)
	require.True(t, c.ActAs)
	for name, bad := range map[string]authtest.Claims{
		"no user": {"sub": nil}, "empty": {"sub": ""}, "long": {"sub": strings.Repeat("x", 257)}, "control": {"sub": "a\n"}, "no tenant": {"org": nil},
		"a number": {"org": 7}, "a list": {"org": []string{"red"}}, "a glob": {"sub": nil, "helix_operations": "*"},
	} {
		_, err := identify(bad)
		require.ErrorIs(t, err, auth.ErrUnauthorized, name)
	}
}

// A stream ends when its caller becomes another user, or one of another tenant.
func TestReconfiguredCaller(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]auth.Token{
		"user":   {User: "carl", Tenant: "red"},
		"tenant": {User: "ann", Tenant: "blue"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPIOn(t, memory.New(), nil, withUsers)
			a.append("s", factOf("s", &fact.SessionCreated{AgentType: "writer", UserID: "ann", Tenant: "red", Base: factBase("s")}), text("s", "x"))
			s := a.stream("/sse?sessionId=s", bearer("ann")...)
			now.Token, now.Operations, now.Sessions = "ann", []string{"*"}, []string{"*"}
			tokens := []auth.Token{now}
			require.NoError(t, a.srv.Reconfigure(auth.BearerTokens(tokens), auth.TokenCallers(tokens), nil))
			_, err := io.Copy(io.Discard, s.resp.Body)
			require.NoError(t, err, "the stream ends")
			a.get("/sse?sessionId=s", bearer("ann")...).failed(t, 404, api.CodeNotFound)
		})
	}
}
