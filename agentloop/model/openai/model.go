package openai

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/helixd/helixd/agentloop/model"
)

// Options are the settings of a model. The zero value is OpenAI's own API
// without a key.
type Options struct {
	APIKey string // sent as a bearer token; empty sends none

	// BaseURL is the API's root in the SDK's form: it ends in /v1. Empty
	// means OpenAI's. Without http(s) and a host every call fails with
	// provider_invalid_request.
	BaseURL string

	// MaxOutputTokens bounds the answer, 0 sends no bound. OpenAI gets it as
	// max_completion_tokens, other servers as max_tokens: many know only that.
	MaxOutputTokens int64

	Temperature *float64 // nil sends none

	// IdleTimeout bounds the wait for each event of an answer that has begun;
	// 0 means DefaultIdleTimeout. A provider silent for longer fails the call
	// with provider_timeout. Comments that keep a connection open are no
	// events; the time that emit takes does not count.
	IdleTimeout time.Duration

	// HTTPClient makes the requests; nil means one of the package's own. Its
	// Timeout, if set, bounds the whole answer.
	HTTPClient *http.Client
}

// DefaultIdleTimeout is the default of Options.IdleTimeout.
const DefaultIdleTimeout = 3 * time.Minute

// responseHeaderTimeout bounds the wait for an answer's first byte, so that a
// server that accepts and then forgets a request does not hold a run for ever.
const responseHeaderTimeout = 10 * time.Minute

// maxErrorBody bounds how much of a failed answer is read, in bytes.
const maxErrorBody = 1 << 20

var defaultClient = sync.OnceValue(func() *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient
	}
	transport = transport.Clone()
	transport.ResponseHeaderTimeout = responseHeaderTimeout
	return &http.Client{Transport: transport}
})

type chat struct {
	name    string
	opts    Options
	service sdk.ChatCompletionService
}

// New returns the model that the API calls name. It panics if name is empty.
// The model is safe for concurrent use.
func New(name string, opts *Options) model.Model {
	if name == "" {
		panic("openai: empty model name")
	}
	m := &chat{name: name}
	if opts != nil {
		m.opts = *opts
	}
	if m.opts.IdleTimeout <= 0 {
		m.opts.IdleTimeout = DefaultIdleTimeout
	}
	client := m.opts.HTTPClient
	if client == nil {
		client = defaultClient()
	}
	// The service is made without the SDK's client, which would read the key,
	// base URL, organization, project and further headers from the environment.
	use := []option.RequestOption{
		option.WithEnvironmentProduction(), // the default base URL, in spite of its name
		option.WithHTTPClient(client),
		option.WithMaxRetries(0),
		option.WithMiddleware(boundErrorBody),
	}
	if m.opts.BaseURL != "" {
		use = append(use, option.WithBaseURL(m.opts.BaseURL))
	}
	if m.opts.APIKey != "" {
		use = append(use, option.WithAPIKey(m.opts.APIKey))
	}
	m.service = sdk.NewChatCompletionService(use...)
	return m
}

// Generate makes one call. See [model.Model].
func (m *chat) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	if !m.usableURL() {
		return model.Answer{}, &model.Error{Code: model.CodeInvalidRequest, Message: "the base URL is not an http(s) URL"}
	}
	ctx, clock := newIdleClock(ctx, m.opts.IdleTimeout)
	defer clock.close()
	// New, told to leave the body alone, is the SDK's NewStreaming without its
	// decoder, which does not tell whether [DONE] came.
	var res *http.Response
	_, err := m.service.New(ctx, m.params(req),
		option.WithJSONSet("stream", true), option.WithResponseBodyInto(&res),
		option.WithMiddleware(clock.startOnAnswer))
	if err != nil {
		return model.Answer{}, m.callError(ctx, res, err)
	}
	if err := m.notStream(ctx, res); err != nil {
		return model.Answer{}, err
	}
	body := &decoder{Decoder: ssestream.NewDecoder(res), clock: clock}
	stream := ssestream.NewStream[sdk.ChatCompletionChunk](body, nil)
	defer func() { _ = stream.Close() }()

	a := answer{emit: emit}
	for stream.Next() {
		if err := a.chunk(stream.Current()); err != nil {
			return model.Answer{}, err
		}
	}
	if err := stream.Err(); err != nil {
		if err := m.streamError(ctx, err, body.Err(), a.finish != ""); err != nil {
			return model.Answer{}, err
		}
	}
	return a.end(m.name, body.done)
}

// usableURL keeps a URL that no retry can mend from looking like a provider
// that is away.
func (m *chat) usableURL() bool {
	if m.opts.BaseURL == "" {
		return true
	}
	u, err := url.Parse(m.opts.BaseURL)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// ownServer tells whether the calls go to OpenAI.
func (m *chat) ownServer() bool {
	u, err := url.Parse(m.opts.BaseURL)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return m.opts.BaseURL == "" || host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com")
}
