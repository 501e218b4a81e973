package openairesponses_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openairesponses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	modeltest.Adapter{
		New: func(s modeltest.Settings) model.Model {
			name := "asked-for"
			if s.APIKey == modeltest.NoName {
				name = ""
			}
			return openairesponses.New(name, &openairesponses.Options{
				APIKey: s.APIKey, BaseURL: s.BaseURL, IdleTimeout: s.IdleTimeout, HTTPClient: s.HTTPClient,
				Headers: s.Headers, ProviderOptions: s.ProviderOptions,
			})
		},
		Root:   "/v1",
		Path:   "/v1/responses",
		Text:   []string{created, added(0, `{"type":"message","id":"msg_1","role":"assistant","content":[]}`), text(0, "Hel")},
		End:    []string{done(0, `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hel"}]}`), completed},
		Enough: 2,
		Environment: []string{
			"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET", "OPENAI_BASE_URL",
			"OPENAI_CUSTOM_HEADERS",
		},
	}.Contract(t)
}

func modelOn(s *modeltest.Server) model.Model {
	return openairesponses.New("asked-for", &openairesponses.Options{BaseURL: s.URL + "/v1", HTTPClient: s.Client()})
}

// ask makes a call that is answered with the events, between the first and the
// last of an answer.
func ask(t *testing.T, events ...string) (model.Answer, *modeltest.Collected) {
	t.Helper()
	return askAll(t, append(append([]string{created}, events...), completed)...)
}

// askAll makes a call that is answered with the events.
func askAll(t *testing.T, events ...string) (model.Answer, *modeltest.Collected) {
	t.Helper()
	return modeltest.Ask(t, modelOn(modeltest.Serve(t, modeltest.Events(events...))), modeltest.Hello())
}

const (
	created   = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m-1","status":"in_progress","output":[],"error":null,"usage":null}}`
	completed = `{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","model":"m-1","status":"completed","output":[],"error":null,` +
		`"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":2},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":7}}}`
)

func added(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, index, item)
}

func done(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

// on is an event of a kind about an item.
func on(kind string, index int, fields string) string {
	return fmt.Sprintf(`{"type":"response.%s","item_id":"i","output_index":%d,%s}`, kind, index, fields)
}

func text(index int, delta string) string {
	return on("output_text.delta", index, fmt.Sprintf(`"content_index":0,"delta":%q,"logprobs":[],"obfuscation":"x"`, delta))
}
