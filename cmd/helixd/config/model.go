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
	Name     string   `json:"name"`     // the model's name; required except with scripted
	APIKey   Secret   `json:"apiKey"`   // the provider's key; empty: none is sent
	// BaseURL is the API's root as the provider's own libraries want it:
	// OpenAI's ends in /v1, Anthropic's does not. Empty: the provider's.
	BaseURL string `json:"baseURL"`
	// MaxOutputTokens is the maximum length of an answer, reasoning included; 0, the
	// default: the provider's own, or with anthropic, which has none, 8192.
	MaxOutputTokens int `json:"maxOutputTokens"`
	// Temperature is at least 0, with anthropic at most 1; nil: the
	// provider's own.
	Temperature *float64 `json:"temperature"`
	// TopP is the share of probability from which the next token is drawn, greater
	// than 0, at most 1; nil: the provider's own.
	TopP *float64 `json:"topP"`
	// TopK is from how many tokens the next one is drawn, at least 1; nil: the
	// provider's own. With anthropic, and with servers compatible with openai; OpenAI
	// has none.
	TopK *int `json:"topK"`
	// FrequencyPenalty is how much less likely tokens become the more often they were
	// used, from -2 to 2; nil: the provider's own. With openai only.
	FrequencyPenalty *float64 `json:"frequencyPenalty"`
	// PresencePenalty is how much less likely used tokens become, from -2 to 2; nil:
	// the provider's own. With openai only.
	PresencePenalty *float64 `json:"presencePenalty"`
	// Seed is a number with which the provider gives the same answer to the same
	// prompt, as far as it can; nil: none. With openai only.
	Seed *int `json:"seed"`
	// StopSequences are texts that end an answer; default none. With anthropic
	// and openai; OpenAI takes four.
	StopSequences []string  `json:"stopSequences"`
	Reasoning     Reasoning `json:"reasoning"`
	// MaxRetries is how often a failed call is retried; default 3. A request on an
	// idle connection that the server had closed is repeated once in addition.
	MaxRetries int `json:"maxRetries"`
	// IdleTimeout is how long the provider may be silent within an answer; 0s, the
	// default: 3m.
	IdleTimeout time.Duration `json:"idleTimeout"`
	// Headers are sent with every call, for instance to a gateway.
	Headers map[string]Secret `json:"headers"`
	// ProviderOptions are further fields of the request, by their names in the
	// provider's API, such as service_tier; a mapping. They override other keys. Do
	// not put secrets here.
	ProviderOptions json.RawMessage `json:"providerOptions"`
	// Cache is how long anthropic caches the beginning of a prompt, so that the next
	// call costs less: 5m or 1h; 0s, the default: not at all. OpenAI caches
	// automatically; set its options (prompt_cache_key) in providerOptions.
	Cache time.Duration `json:"cache"`
	// StrictOutput is true if the provider must enforce outputSchema. It may then
	// accept fewer schemas: OpenAI needs every property required and
	// additionalProperties false. Default false; helixd checks outputs anyway.
	StrictOutput bool `json:"strictOutput"`

	// Script is what a scripted model answers: a turn each call, from the first one after
	// each message of the user. The last turn repeats.
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
	// Effort is one of the provider's levels, such as low, medium or high.
	Effort string `json:"effort"`
	// Summary is the kind of summaries of reasoning, with openai-responses: auto,
	// concise or detailed.
	Summary string `json:"summary"`
	// BudgetTokens is the maximum of reasoning of anthropic's models that do not
	// decide it themselves: at least 1024, less than maxOutputTokens.
	BudgetTokens int `json:"budgetTokens"`
}

// Turn is one answer of a scripted model.
type Turn struct {
	Reasoning string       `json:"reasoning"` // the reasoning of the answer
	Text      string       `json:"text"`      // the text of the answer
	ToolCalls []ScriptCall `json:"toolCalls"`
}

// ScriptCall is a tool call of a scripted model.
type ScriptCall struct {
	ID        string          `json:"id"`        // the call's id; empty: the model makes one
	Name      string          `json:"name"`      // the tool's name
	Arguments json.RawMessage `json:"arguments"` // the arguments, an object; nil: {}
}
