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
	Provider Provider `json:"provider"`
	Name     string   `json:"name"` // needed but for scripted
	APIKey   Secret   `json:"apiKey"`
	BaseURL  string   `json:"baseURL"` // empty: the provider's
	// MaxOutputTokens bounds an answer; 0, the default: the provider's own.
	MaxOutputTokens int `json:"maxOutputTokens"`
	// Temperature is at least 0; nil: the provider's own.
	Temperature *float64 `json:"temperature"`
	// MaxRetries is how often a failed call is tried again; default 3.
	MaxRetries int `json:"maxRetries"`

	// Script is what a scripted model answers, a turn each call.
	Script []Turn `json:"script"`
	// ScriptDelay is the pause before each piece that a scripted model
	// streams; default 0.
	ScriptDelay time.Duration `json:"scriptDelay"`
}

// Turn is one answer of a scripted model.
type Turn struct {
	Reasoning string       `json:"reasoning"`
	Text      string       `json:"text"`
	ToolCalls []ScriptCall `json:"toolCalls"`
}

// ScriptCall is a tool call of a scripted model.
type ScriptCall struct {
	ID        string          `json:"id"` // empty: the model makes one
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object; nil: {}
}
