package openai_test

import (
	"testing"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openai"
)

func TestContract(t *testing.T) {
	modeltest.Adapter{
		New: func(s modeltest.Settings) model.Model {
			name := "asked-for"
			if s.APIKey == modeltest.NoName {
				name = ""
			}
			return openai.New(name, &openai.Options{
				APIKey: s.APIKey, BaseURL: s.BaseURL, IdleTimeout: s.IdleTimeout, HTTPClient: s.HTTPClient,
				Headers: s.Headers, ProviderOptions: s.ProviderOptions,
			})
		},
		Root:   "/v1",
		Path:   "/v1/chat/completions",
		Text:   []string{chunk(`{"content":"Hel"}`, "null")},
		End:    []string{chunk(`{}`, `"stop"`)},
		Enough: 1,
		Environment: []string{
			"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET", "OPENAI_BASE_URL",
			"OPENAI_CUSTOM_HEADERS",
		},
	}.Contract(t)
}
