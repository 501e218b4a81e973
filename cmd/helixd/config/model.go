package config

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/agentloop/model/provider"
)

// Provider is the protocol that a model is spoken to with.
type Provider string

// Providers.
const (
	ProviderAnthropic       Provider = "anthropic"        // Messages
	ProviderOpenAI          Provider = "openai"           // Chat Completions
	ProviderOpenAIResponses Provider = "openai-responses" // Responses
	ProviderScripted        Provider = "scripted"         // no model: plays Script
)

// Model is an agent's language model.
type Model struct {
	Provider Provider `json:"provider"` // anthropic, openai, openai-responses or scripted
	Name     string   `json:"name"`     // needed but for scripted
	APIKey   Secret   `json:"apiKey"`   // needed but for scripted
	// BaseURL is the API's root as the provider's own libraries want it:
	// OpenAI's ends in /v1, Anthropic's does not. Empty: the provider's.
	BaseURL string `json:"baseURL"`
	// MaxOutputTokens bounds an answer, reasoning included; 0, the default:
	// the provider's own bound, or with anthropic, which has none, 8192.
	MaxOutputTokens int `json:"maxOutputTokens"`
	// Temperature is at least 0, with anthropic at most 1; nil: the
	// provider's own.
	Temperature *float64 `json:"temperature"`
	// TopP is the share of probability that the next word is drawn from, greater
	// than 0, at most 1; nil: the provider's own.
	TopP *float64 `json:"topP"`
	// TopK is how many words the next one is drawn from, at least 1; nil: the
	// provider's own. With anthropic, and with openai's compatible servers; OpenAI
	// has none.
	TopK *int `json:"topK"`
	// FrequencyPenalty makes words less likely the more often they were used,
	// from -2 to 2; nil: the provider's own. With openai only.
	FrequencyPenalty *float64 `json:"frequencyPenalty"`
	// PresencePenalty makes words less likely that were used, from -2 to 2; nil:
	// the provider's own. With openai only.
	PresencePenalty *float64 `json:"presencePenalty"`
	// Seed asks for the same answer to the same prompt, as far as the provider
	// can; nil: none. With openai only.
	Seed *int `json:"seed"`
	// StopSequences are texts that end an answer; default none. With anthropic
	// and openai; OpenAI takes four.
	StopSequences []string  `json:"stopSequences"`
	Reasoning     Reasoning `json:"reasoning"`
	// MaxRetries is how often a failed call is tried again; default 3. A request on a
	// connection that the server had closed while it was idle is sent once more besides.
	MaxRetries int `json:"maxRetries"`
	// IdleTimeout is how long the provider may send nothing within an answer; 0s,
	// the default: 3m.
	IdleTimeout time.Duration `json:"idleTimeout"`
	// Headers are sent with every call, for instance to a gateway.
	Headers map[string]Secret `json:"headers"`
	// ProviderOptions are further members of a request's body, by their names in
	// the provider's API, such as service_tier; a mapping. They replace what
	// other keys send. No place for secrets.
	ProviderOptions json.RawMessage `json:"providerOptions"`
	// Cache is how long anthropic keeps the beginning of a prompt, so that the
	// next call pays less for it: 5m or 1h; 0s, the default: not at all. OpenAI
	// does it by itself; providerOptions have its settings (prompt_cache_key).
	Cache time.Duration `json:"cache"`
	// StrictOutput asks the provider to give only outputs that fit outputSchema, of
	// which it may then take fewer forms: OpenAI wants every property required
	// and additionalProperties false. Default false; outputs are checked anyway.
	StrictOutput bool `json:"strictOutput"`

	// Script is what a scripted model answers, a turn each call.
	Script []Turn `json:"script"`
	// ScriptDelay is the pause before each piece that a scripted model
	// streams; default 0.
	ScriptDelay time.Duration `json:"scriptDelay"`
}

// Options are ProviderOptions by their names; it is false if they are no mapping.
func (m Model) Options() (options provider.Options, ok bool) {
	if m.ProviderOptions == nil {
		return nil, true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(m.ProviderOptions, &members) != nil || members == nil {
		return nil, false
	}
	options = provider.Options{}
	for name, value := range members {
		options[name] = value
	}
	return options, true
}

// Reasoning is how much a model reasons, and what is shown of it. By default
// the provider decides.
type Reasoning struct {
	// Effort is one of the provider's words, such as low, medium or high.
	Effort string `json:"effort"`
	// Summary asks openai-responses for summaries: auto, concise or detailed.
	Summary string `json:"summary"`
	// BudgetTokens bounds the thinking of anthropic's models that do not
	// decide it themselves: at least 1024, less than MaxOutputTokens.
	BudgetTokens int `json:"budgetTokens"`
}

// Turn is one answer of a scripted model.
type Turn struct {
	Reasoning string       `json:"reasoning"` // what a scripted model thinks
	Text      string       `json:"text"`      // what it says
	ToolCalls []ScriptCall `json:"toolCalls"`
}

// ScriptCall is a tool call of a scripted model.
type ScriptCall struct {
	ID        string          `json:"id"`        // empty: the model makes one
	Name      string          `json:"name"`      // of the tool
	Arguments json.RawMessage `json:"arguments"` // an object; nil: {}
}
