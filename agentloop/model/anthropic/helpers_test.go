package anthropic_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/anthropic"
	"github.com/helixd/helixd/agentloop/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	modeltest.Adapter{
		New: func(s modeltest.Settings) model.Model {
			name := "asked-for"
			if s.APIKey == modeltest.NoName {
				name = ""
			}
			return anthropic.New(name, &anthropic.Options{
				APIKey: s.APIKey, BaseURL: s.BaseURL, IdleTimeout: s.IdleTimeout, HTTPClient: s.HTTPClient,
				Headers: s.Headers, ProviderOptions: s.ProviderOptions,
			})
		},
		Path:   "/v1/messages",
		Text:   []string{start, begin(0, `{"type":"text","text":""}`), delta(0, `{"type":"text_delta","text":"Hel"}`)},
		End:    []string{stop(0), reason("end_turn"), `{"type":"message_stop"}`},
		Enough: 2,
		Environment: []string{
			"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE", "ANTHROPIC_CUSTOM_HEADERS",
		},
	}.Contract(t)
}

func modelOn(s *modeltest.Server) model.Model {
	return anthropic.New("asked-for", &anthropic.Options{BaseURL: s.URL, HTTPClient: s.Client()})
}

// ask makes a call that is answered with the events.
func ask(t *testing.T, events ...string) (model.Answer, *modeltest.Collected) {
	t.Helper()
	return modeltest.Ask(t, modelOn(modeltest.Serve(t, modeltest.Events(events...))), modeltest.Hello())
}

const start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],` +
	`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}`

func begin(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func delta(index int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)
}

func stop(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

// reason are the last events of an answer but one.
func reason(r string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":4}}`, r)
}

// answer is a whole answer that holds the events.
func answer(r string, events ...string) []string {
	return append(append([]string{start}, events...), reason(r), `{"type":"message_stop"}`)
}
