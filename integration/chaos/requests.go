//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// answerWithin is how long a client waits for an answer before it asks another
// node.
const answerWithin = 8 * time.Second

// answer is what a node has answered. Without a status nothing is known of what
// became of the request.
type answer struct {
	status int
	raw    []byte
	code   string // of an error
	detail struct{ Head uint64 }
}

// unsure reports whether the request may or may not have been carried out, and
// is to be made again.
func (a answer) unsure() bool { return a.status == 0 || a.status >= 500 }

func (a answer) into(v any) bool { return a.status == http.StatusOK && json.Unmarshal(a.raw, v) == nil }

func (a answer) String() string { return fmt.Sprintf("%d %.300s", a.status, a.raw) }

// anyNode returns one node, by the clients' link.
func (t *trial) anyNode(r *rand.Rand) string { return t.cluster[r.IntN(len(t.cluster))].url }

func (t *trial) get(ctx context.Context, base, path string) answer {
	return t.call(ctx, http.MethodGet, base+path, nil, nil)
}

func (t *trial) post(base, path string, body any, header map[string]string) answer {
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			panic(err) // our own
		}
	}
	return t.call(t.ctx, http.MethodPost, base+path, raw, header)
}

func (t *trial) call(ctx context.Context, method, url string, body []byte, header map[string]string) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		panic(err) // our own
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return answer{}
	}
	defer resp.Body.Close()
	if a.raw, err = io.ReadAll(resp.Body); err != nil {
		return answer{}
	}
	a.status = resp.StatusCode
	if a.status != http.StatusOK {
		var refusal struct {
			Code   string
			Detail json.RawMessage
		}
		_ = json.Unmarshal(a.raw, &refusal)
		_ = json.Unmarshal(refusal.Detail, &a.detail)
		a.code = refusal.Code
	}
	if a.status == http.StatusInternalServerError {
		t.note("an answer 500", "%s %s: %s", method, url, a.raw)
	}
	return a
}
