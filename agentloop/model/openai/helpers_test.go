package openai_test

import (
	"strings"
	"testing"

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
func ask(t *testing.T, s *modeltest.Server) (model.Answer, *modeltest.Collected) {
	t.Helper()
	return modeltest.Ask(t, modelOn(s), hello())
}

// askFor makes a call that must fail.
func askFor(t *testing.T, s *modeltest.Server) (*model.Error, *modeltest.Collected) {
	t.Helper()
	return modeltest.AskFor(t, modelOn(s), hello())
}

func hello() model.Request { return modeltest.Hello() }

type collected = modeltest.Collected

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
