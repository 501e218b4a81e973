// Package openai computes embeddings over the embeddings API: OpenAI's own and
// the many servers that speak it.
//
// It does not retry, does not log, and reads no OPENAI_* environment variable:
// what is not in [Options] is not sent. Errors are *model.Error and hold no key
// and no URL.
package openai

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/agentloop/model/provider"
)

// Options are the settings of an embedder. The zero value is OpenAI's own API
// without a key.
type Options struct {
	APIKey string // sent as a bearer token; empty sends none

	// BaseURL is the API's root: it ends in /v1. Empty means
	// OpenAI's. Without http(s) and a host every call fails with
	// provider_invalid_request.
	BaseURL string

	// Dimensions is how many numbers a vector is to have; 0 leaves it to the
	// server. Not all models can be asked.
	Dimensions int

	// HTTPClient makes the requests; nil means one that all adapters share.
	HTTPClient *http.Client
}

// Embedder computes vectors. It is safe for concurrent use.
type Embedder struct {
	name       string
	dimensions int
	caller     provider.Caller
}

// New returns an embedder that asks the model which the API calls name. It
// panics if name is empty.
func New(name string, o *Options) *Embedder {
	var opts Options
	if o != nil {
		opts = *o
	}
	return &Embedder{
		name: name, dimensions: opts.Dimensions,
		caller: provider.New(provider.Caller{
			Model: name, Embedding: true, APIKey: opts.APIKey, Root: openai.OpenAI, BaseURL: opts.BaseURL, HTTPClient: opts.HTTPClient,
		}),
	}
}

// Model is the API's name of the model and, if they were asked for, "/" and the
// dimensions: vectors of different ones can't be compared.
func (e *Embedder) Model() string {
	if e.dimensions == 0 {
		return e.name
	}
	return e.name + "/" + strconv.Itoa(e.dimensions)
}

// Embed makes one call. Errors are *model.Error.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	request := struct {
		Model      string   `json:"model"`
		Input      []string `json:"input"`
		Dimensions int      `json:"dimensions,omitempty"`
	}{e.name, texts, max(e.dimensions, 0)}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	err := e.caller.Document(ctx, "embeddings", request, &answer)
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= len(texts) || vectors[d.Index] != nil {
			return nil, wrongAnswer("names a text %d that it was not asked for, or twice", d.Index)
		}
		vectors[d.Index] = d.Embedding
	}
	for i, v := range vectors {
		if len(v) == 0 || e.dimensions > 0 && len(v) != e.dimensions {
			return nil, wrongAnswer("has %d numbers for text %d", len(v), i)
		}
	}
	return vectors, nil
}

func wrongAnswer(format string, args ...any) error {
	return &model.Error{Code: model.CodeProvider, Message: "the answer " + fmt.Sprintf(format, args...)}
}
