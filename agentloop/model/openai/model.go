package openai

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
)

// Options are the settings of a model. The zero value is OpenAI's own API
// without a key.
type Options struct {
	APIKey string // sent as a bearer token; empty sends none

	// BaseURL is the API's root: it ends in /v1. Empty
	// means OpenAI's. Without http(s) and a host every call fails with
	// provider_invalid_request.
	BaseURL string

	// MaxOutputTokens bounds the answer, 0 sends no bound. OpenAI gets it as
	// max_completion_tokens, other servers as max_tokens: many know only that.
	MaxOutputTokens int64

	Temperature *float64 // nil sends none
	TopP        *float64 // nil sends none
	// TopK is sent as top_k, which OpenAI itself refuses and many compatible
	// servers know; nil sends none.
	TopK             *int64
	FrequencyPenalty *float64 // nil sends none
	PresencePenalty  *float64 // nil sends none
	Seed             *int64   // nil sends none
	StopSequences    []string // texts that end the answer; OpenAI takes four

	// Headers are sent with every call, for instance to a gateway. Errors don't
	// show their values.
	Headers map[string]string
	// ProviderOptions are further members of the request's body, such as
	// prompt_cache_key. They replace what the other settings send; New panics
	// for those that are the call itself, such as messages.
	ProviderOptions provider.Options

	// Effort is how much the model reasons: one of the server's words, such as
	// low or high. Empty sends none.
	Effort string

	// IdleTimeout bounds the wait for each event of an answer that has begun;
	// 0 means [provider.DefaultIdleTimeout]. A provider silent for longer fails the call
	// with provider_timeout. Comments that keep a connection open are no
	// events; the time that emit takes does not count.
	IdleTimeout time.Duration

	// HTTPClient makes the requests; nil means one that all adapters share.
	// Its Timeout, if set, bounds the whole answer.
	HTTPClient *http.Client
}

// OpenAI is the root of OpenAI's own API.
const OpenAI = "https://api.openai.com/v1"

type chat struct {
	name   string
	opts   Options
	caller provider.Caller
}

// New returns the model that the API calls name. It panics if name is empty, and
// for ProviderOptions that are not allowed.
// The model is safe for concurrent use.
func New(name string, opts *Options) model.Model {
	m := &chat{name: name}
	if opts != nil {
		m.opts = *opts
	}
	m.caller = provider.New(provider.Caller{
		Model: name, APIKey: m.opts.APIKey, Root: OpenAI, BaseURL: m.opts.BaseURL, Headers: m.opts.Headers,
		Options: m.opts.ProviderOptions, HTTPClient: m.opts.HTTPClient, IdleTimeout: m.opts.IdleTimeout,
	})
	return m
}

// Name implements [model.Named].
func (m *chat) Name() string { return m.name }

// MaxOutputTokens implements [model.Bounded].
func (m *chat) MaxOutputTokens() int64 { return m.opts.MaxOutputTokens }

// Provider implements [model.Provided].
func (*chat) Provider() string { return "openai" }

// Generate makes one call. See [model.Model].
func (m *chat) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	a := &answer{caller: m.caller, emit: emit}
	err := m.caller.Stream(ctx, "chat/completions", m.request(req), a)
	if err != nil {
		return model.Answer{}, err
	}
	return a.end(m.name)
}

// ownServer says whether the calls go to OpenAI.
func (m *chat) ownServer() bool {
	u, err := url.Parse(m.opts.BaseURL)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return m.opts.BaseURL == "" || host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com")
}
