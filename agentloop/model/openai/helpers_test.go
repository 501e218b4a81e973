package openai_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789"

// modelOn returns a model that calls s.
func modelOn(s *modeltest.Server) model.Model {
	return openai.New("asked-for", options(s))
}

func options(s *modeltest.Server) *openai.Options {
	return &openai.Options{APIKey: testKey, BaseURL: s.URL + "/v1", HTTPClient: s.Client()}
}

// ask makes a call that must succeed.
func ask(t *testing.T, s *modeltest.Server) (model.Answer, *collected) {
	t.Helper()
	var c collected
	answer, err := modelOn(s).Generate(t.Context(), hello(), c.emit)
	require.NoError(t, err)
	c.check(t)
	return answer, &c
}

// askFor makes a call that must fail.
func askFor(t *testing.T, s *modeltest.Server) (*model.Error, *collected) {
	t.Helper()
	var c collected
	answer, err := modelOn(s).Generate(t.Context(), hello(), c.emit)
	require.Zero(t, answer)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	return e, &c
}

func hello() model.Request {
	return model.Request{Messages: []model.Message{{Role: model.RoleUser, Content: "hello"}}}
}

// collected is an answer put together from its events.
type collected struct {
	events    []model.Event
	text      string
	reasoning string
	calls     []call
}

type call struct{ id, name, arguments string }

func (c *collected) emit(e model.Event) error {
	c.events = append(c.events, e)
	switch e := e.(type) {
	case model.TextDelta:
		c.text += e.Text
	case model.ReasoningDelta:
		c.reasoning += e.Text
	case model.ToolCallStart:
		for len(c.calls) <= e.Call {
			c.calls = append(c.calls, call{})
		}
		c.calls[e.Call].id, c.calls[e.Call].name = e.ID, e.Name
	case model.ToolCallDelta:
		c.calls[e.Call].arguments += e.Text
	}
	return nil
}

// check requires that no piece is empty and that every tool call starts once,
// goes on only in between, and ends once.
func (c *collected) check(t *testing.T) {
	t.Helper()
	open := map[int]bool{} // false once it has ended
	for _, e := range c.events {
		switch e := e.(type) {
		case model.TextDelta:
			require.NotEmpty(t, e.Text)
		case model.ReasoningDelta:
			require.NotEmpty(t, e.Text)
		case model.ToolCallStart:
			require.NotContains(t, open, e.Call)
			open[e.Call] = true
		case model.ToolCallDelta:
			require.NotEmpty(t, e.Text)
			require.True(t, open[e.Call])
		case model.ToolCallEnd:
			require.True(t, open[e.Call])
			open[e.Call] = false
		}
	}
	require.Len(t, open, len(c.calls))
	for i := range c.calls {
		require.False(t, open[i], "call %d has no end", i)
	}
}

// chunk is a chunk with one choice. delta and finish are JSON.
func chunk(delta, finish string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[` +
		`{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

// deltas is a stream of chunks that ends with finish and [DONE].
func deltas(finish string, each ...string) modeltest.Stream {
	var data []string
	for _, d := range each {
		data = append(data, chunk(d, "null"))
	}
	return modeltest.Events(append(data, chunk(`{}`, finish))...)
}

// unframed drops the end mark.
func unframed(s modeltest.Stream) modeltest.Stream {
	s.Done = false
	return s
}

func words(n int) string { return strings.Repeat("wörd ", n) }
