package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/httptool"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

// scriptOf is a model of turns.
func scriptOf(turns ...scripted.Turn) model.Model { return scripted.New(turns, nil) }

func calling(name, args string) scripted.Turn {
	return scripted.Turn{ToolCalls: []scripted.Call{{Name: name, Arguments: json.RawMessage(args)}}}
}

// recordedOf runs a session of the first agent for real, and makes a cohort of it.
func recordedOf(t *testing.T, agents []agentloop.Agent, o cohort.Options, turns ...string) *cohort.Cohort {
	t.Helper()
	log := memory.New()
	loop, err := engine.New(log, agents, &engine.Options{RetryDelay: time.Millisecond})
	require.NoError(t, err)
	defer loop.Stop()
	for _, text := range turns {
		h, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: agents[0].Name, UserID: "u", Messages: []agentloop.Input{{Content: text}}})
		require.NoError(t, err)
		_, err = h.Result(t.Context())
		require.NoError(t, err)
	}
	c, err := cohort.Create(t.Context(), func(yield func(cohort.Source, error) bool) { yield(sourceOf(log, "s"), nil) }, o)
	require.NoError(t, err)
	return c
}

// same asserts that agents repeat a cohort, against the records and against themselves.
func same(t *testing.T, c *cohort.Cohort, agents ...agentloop.Agent) *result.Report {
	t.Helper()
	for _, baseline := range [][]lab.Agent{nil, lab.Agents(agents...)} {
		r := run(t, lab.Options{Cohort: c, Candidate: lab.Agents(agents...), Baseline: baseline})
		require.Empty(t, slices.Concat(r.Regressions, r.Unjudged, r.Improvements, r.Changed, r.Flaky))
		require.Equal(t, result.ExitPassed, r.ExitCode())
	}
	return run(t, lab.Options{Cohort: c, Candidate: lab.Agents(agents...)})
}

// finder is an agent that looks something up, and then answers.
func finder(real func() (any, error), turns ...scripted.Turn) agentloop.Agent {
	return agentloop.Agent{
		Name: "a", SystemPrompt: "p", Model: scriptOf(append(turns, scripted.Turn{Text: "done"})...),
		Tools: []agentloop.Tool{{Name: "find", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return real() }}},
	}
}

func forbidden(t *testing.T) func() (any, error) {
	return func() (any, error) { t.Error("a live call"); return nil, nil }
}

// A session whose values are redacted runs again as one that has them.
func TestARedactedSessionRunsAgain(t *testing.T) {
	rules, err := cohort.ParseRules([]byte("fields: [email]\npatterns: ['[A-Z]<\\d+>']"))
	require.NoError(t, err)
	turns := []scripted.Turn{calling("find", `{"email":"ann@x.org"}`), calling("find", `{"n":1}`)}
	c := recordedOf(t, []agentloop.Agent{finder(func() (any, error) {
		return map[string]any{"email": "ann@x.org", "note": "<b>A<17></b> & so on"}, nil
	}, turns...)}, cohort.Options{Rules: rules}, "Find ann@x.org", "Find it & A<17>")
	var file bytes.Buffer
	require.NoError(t, c.Write(&file))
	require.NotContains(t, file.String(), "ann@x.org")
	require.NotContains(t, file.String(), "A<17>")
	c, err = cohort.Read(&file)
	require.NoError(t, err)
	same(t, c, finder(forbidden(t)))
}

// What results hold makes no difference, and failures fail again.
func TestResultsOfAnyTextRunAgain(t *testing.T) {
	results := []any{"<&>", json.RawMessage(`{ "b": "<", "a": [1.50, "\u003c"] }`), nil, map[string]any{"é": "\u2028"}, errors.New("busy <now> & later")}
	n := 0
	var turns []scripted.Turn
	for range results {
		turns = append(turns, calling("find", `{}`))
	}
	c := recordedOf(t, []agentloop.Agent{finder(func() (any, error) {
		n++
		if err, failed := results[n-1].(error); failed {
			return nil, err
		}
		return results[n-1], nil
	}, turns...)}, cohort.Options{}, "Hi")
	same(t, c, finder(forbidden(t)))
}

// A model that fails now and then is repeated as it was.
func TestRepeatedModelCallsRunAgain(t *testing.T) {
	n := 0
	a := agentloop.Agent{Name: "a", Model: failing{scriptOf(scripted.Turn{Text: "at last"}), func() error {
		if n++; n%3 > 0 {
			return &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}
		}
		return nil
	}}}
	c := recordedOf(t, []agentloop.Agent{a}, cohort.Options{}, "Hi", "Again")
	same(t, c, a)

	a.Model = failing{a.Model, func() error { return &model.Error{Code: model.CodeAuthFailed, Message: "no <key>"} }}
	c = recordedOf(t, []agentloop.Agent{a}, cohort.Options{}, "Hi")
	r := same(t, c, a)
	require.Equal(t, "failed (provider_auth_failed)", r.Results[0].Candidate.Outcome)
}

type failing struct {
	model.Model
	fail func() error
}

func (f failing) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	if err := f.fail(); err != nil {
		return model.Answer{}, err
	}
	return f.Model.Generate(ctx, req, emit)
}

// deadTransport fails the test at every request.
type deadTransport struct{ t *testing.T }

func (d deadTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	d.t.Error("a live request to " + r.URL.String())
	return nil, errors.New("forbidden")
}

// Tools over HTTP, agents of other servers and providers of models are not asked.
func TestNoRequestLeavesTheProcess(t *testing.T) {
	theirs := memory.New()
	other, err := engine.New(theirs, []agentloop.Agent{{Name: "expert", Model: scriptOf(scripted.Turn{Text: "It is <blue>."})}}, nil)
	require.NoError(t, err)
	defer other.Stop()
	api, err := httpapi.New(httpapi.Options{Log: theirs, Loop: other, AllowUnauthenticated: true})
	require.NoError(t, err)
	server := httptest.NewServer(api)
	defer server.Close()
	weather := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"sky": "<grey>"}`))
	}))
	defer weather.Close()
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a live request to a model's provider") }))
	defer provider.Close()

	agent := func(client *http.Client, m model.Model) agentloop.Agent {
		return agentloop.Agent{
			Name: "a", Model: m,
			Tools: []agentloop.Tool{{Name: "weather", Execute: httptool.Execute(weather.URL, &httptool.Options{Client: client})}},
			RemoteAgents: []agentloop.RemoteAgent{{
				Name: "expert", AgentType: "expert", Timeout: time.Minute, Transport: remotehttp.New(server.URL, &remotehttp.Options{Client: client}),
			}},
		}
	}
	turns := []scripted.Turn{calling("weather", `{}`), calling("subagent__expert", `{"message":"What colour?"}`), {Text: "Blue."}}
	c := recordedOf(t, []agentloop.Agent{agent(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, scriptOf(turns...))}, cohort.Options{}, "Hi")
	dead := &http.Client{Transport: deadTransport{t}}
	same(t, c, agent(dead, openai.New("gpt", &openai.Options{APIKey: "k", BaseURL: provider.URL + "/v1"})))
}

// remembers recalls what a function says.
type remembers func(query string) []string

func (r remembers) Recall(_ context.Context, req agentloop.RecallRequest) (found []fact.RecalledMemory, err error) {
	for _, text := range r(req.Query) {
		found = append(found, fact.RecalledMemory{MemoryID: "m-" + text, Content: text})
	}
	return found, nil
}

// Memories that were not recorded are not known: they are not none.
func TestMemoriesThatWereNotRecorded(t *testing.T) {
	a := finder(forbidden(t))
	c := recordedOf(t, []agentloop.Agent{a}, cohort.Options{}, "Hi")
	a.Recall = remembers(func(string) []string { t.Error("a live recall"); return nil })
	r := run(t, lab.Options{Cohort: c, Candidate: lab.Agents(a)})
	require.Empty(t, r.Regressions)
	require.Len(t, r.Unjudged, 1)
	require.Contains(t, r.Unjudged[0].Why, "was not recorded")
	require.Contains(t, r.Unjudged[0].Why, "Hi")
}

// Sub-agents that stay and work beside their parent do the same again.
func TestSubAgentsThatStayRunAgain(t *testing.T) {
	helper := agentloop.Agent{
		Name: "helper", Model: scriptOf(calling("find", `{"for":"helper"}`), scripted.Turn{Text: "helped"}),
		Tools: finder(func() (any, error) { return "it", nil }).Tools,
	}
	boss := agentloop.Agent{
		Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "helper", Mode: agentloop.Blocking}},
		Model: scriptOf(
			calling("companion__spawnAgent", `{"agent":"helper","name":"one","initialMessage":"Do it"}`),
			calling("companion__sendMessage", `{"name":"one","message":"And again"}`),
			calling("companion__listChildren", `{}`), scripted.Turn{Text: "All done."}),
	}
	c := recordedOf(t, []agentloop.Agent{boss, helper}, cohort.Options{}, "Hi", "Once more")
	helper.Tools = finder(forbidden(t)).Tools
	for range rounds(t, 5) {
		same(t, c, boss, helper)
	}
}

// Of calls at the same time that were not recorded, the report always names the same one.
func TestCallsAtOnceThatWereNotRecorded(t *testing.T) {
	at := func(args ...string) agentloop.Agent {
		both := scripted.Turn{}
		for _, a := range args {
			both.ToolCalls = append(both.ToolCalls, scripted.Call{Name: "find", Arguments: json.RawMessage(a)})
		}
		return finder(func() (any, error) { return "it", nil }, both)
	}
	c := recordedOf(t, []agentloop.Agent{at(`{"n":0}`)}, cohort.Options{}, "Hi")
	script := []lab.Rule{{Turns: []scripted.Turn{{ToolCalls: []scripted.Call{
		{Name: "find", Arguments: json.RawMessage(`{"n":3}`)}, {Name: "find", Arguments: json.RawMessage(`{"n":1}`)}, {Name: "find", Arguments: json.RawMessage(`{"n":2}`)},
	}}, {Text: "done"}}}}
	for range rounds(t, 20) {
		r := run(t, lab.Options{Cohort: c, Candidate: lab.Agents(finder(forbidden(t))), Script: script, Rules: result.Rules{Accept: []result.Kind{result.ToolCall, result.ModelAnswer}}})
		require.Len(t, r.Unjudged, 1)
		require.Contains(t, r.Unjudged[0].Why, `{"n":1}`)
	}
}
