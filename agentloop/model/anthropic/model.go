package anthropic

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
)

// Options are the settings of a model. The zero value is Anthropic's own API
// without a key.
type Options struct {
	APIKey string // sent as X-Api-Key; empty sends none

	// BaseURL is the API's root, without /v1. Empty means
	// Anthropic's. Without http(s) and a host every call fails with
	// provider_invalid_request.
	BaseURL string

	// MaxOutputTokens bounds the answer, thinking included; 0 means
	// DefaultMaxOutputTokens beside ThinkingTokens. The API asks for a bound.
	MaxOutputTokens int64

	Temperature   *float64 // nil sends none
	TopP          *float64 // nil sends none
	TopK          *int64   // nil sends none
	StopSequences []string // texts that end the answer

	// Cache is how long the provider keeps the beginning of a prompt, so that the
	// next call pays less for it: DefaultCache or LongCache; 0: not at all. The
	// tools, the system prompt and the conversation so far are kept, each also
	// without what follows it.
	Cache time.Duration

	// Headers are sent with every call, for instance to a gateway. Errors don't
	// show their values.
	Headers map[string]string
	// ProviderOptions are further members of the request's body, such as
	// service_tier. They replace what the other settings send; New panics for
	// those that are the call itself, such as messages.
	ProviderOptions provider.Options

	// Effort is how much the model does: one of the API's words, such as low
	// or high. It lets the model decide how much it thinks. Empty sends none.
	Effort string

	// ThinkingTokens bounds the thinking of models that do not decide it
	// themselves: at least 1,024 and below MaxOutputTokens. 0 sends no bound.
	ThinkingTokens int64

	// IdleTimeout bounds the wait for each event of an answer that has begun;
	// 0 means [provider.DefaultIdleTimeout]. A provider silent for longer
	// fails the call with provider_timeout. Pings count as events; the time
	// that emit takes does not.
	IdleTimeout time.Duration

	// HTTPClient makes the requests; nil means one that all adapters share.
	// Its Timeout, if set, bounds the whole answer.
	HTTPClient *http.Client
}

// DefaultMaxOutputTokens bounds an answer if no other limit does.
const DefaultMaxOutputTokens = 8192

// The lifetimes of cached prompts (Options.Cache).
const (
	DefaultCache = 5 * time.Minute
	LongCache    = time.Hour
)

// root is the root of Anthropic's own API.
const root = "https://api.anthropic.com"

type messages struct {
	name   string
	opts   Options
	caller provider.Caller
}

// New returns the model that the API calls name. It panics if name is empty, and
// for a Cache or ProviderOptions that are not allowed.
// The model is safe for concurrent use.
func New(name string, opts *Options) model.Model {
	m := &messages{name: name}
	if opts != nil {
		m.opts = *opts
	}
	switch m.opts.Cache {
	case 0, DefaultCache, LongCache:
	default:
		panic("anthropic: prompts are cached for 5m or 1h")
	}
	own := map[string]string{"Anthropic-Version": "2023-06-01"}
	if m.opts.APIKey != "" {
		own["X-Api-Key"] = m.opts.APIKey
	}
	m.caller = provider.New(provider.Caller{
		Model: name, APIKey: m.opts.APIKey, Root: root, BaseURL: m.opts.BaseURL, Own: own, Headers: m.opts.Headers,
		Options: m.opts.ProviderOptions, HTTPClient: m.opts.HTTPClient, IdleTimeout: m.opts.IdleTimeout,
	})
	return m
}

// Name implements [model.Named].
func (m *messages) Name() string { return m.name }

// MaxOutputTokens implements [model.Bounded].
func (m *messages) MaxOutputTokens() int64 {
	if m.opts.MaxOutputTokens > 0 {
		return m.opts.MaxOutputTokens
	}
	return DefaultMaxOutputTokens + m.opts.ThinkingTokens
}

// Provider implements [model.Provided].
func (*messages) Provider() string { return "anthropic" }

// Generate makes one call. See [model.Model].
func (m *messages) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	params, err := m.params(req)
	if err != nil {
		return model.Answer{}, err
	}
	a := &answer{caller: m.caller, emit: emit, name: m.name}
	if err := m.caller.Stream(ctx, "v1/messages", params, a); err != nil {
		return model.Answer{}, err
	}
	return a.end()
}
