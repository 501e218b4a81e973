package config

import (
	"encoding/json"
	"time"
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
	Temperature *float64  `json:"temperature"`
	Reasoning   Reasoning `json:"reasoning"`
	// MaxRetries is how often a failed call is tried again; default 3.
	MaxRetries int `json:"maxRetries"`

	// Script is what a scripted model answers, a turn each call.
	Script []Turn `json:"script"`
	// ScriptDelay is the pause before each piece that a scripted model
	// streams; default 0.
	ScriptDelay time.Duration `json:"scriptDelay"`
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
