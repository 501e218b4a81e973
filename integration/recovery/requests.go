package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// answerWithin is how long a request may take before it is made again.
const answerWithin = time.Minute

var client = &http.Client{Transport: &http.Transport{
	MaxIdleConnsPerHost: 256, DisableCompression: true, IdleConnTimeout: 5 * time.Second,
}}

// refusal is an answer other than 200.
type refusal struct {
	status int
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %.300s", r.status, r.body) }

// get returns the body of an answer.
func get(ctx context.Context, url string) ([]byte, error) {
	return call(ctx, http.MethodGet, url, nil, nil)
}

// post sends JSON.
func post(ctx context.Context, url string, body any, header map[string]string) ([]byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return call(ctx, http.MethodPost, url, raw, header)
}

func call(ctx context.Context, method, url string, body []byte, header map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &refusal{resp.StatusCode, raw}
	}
	return raw, err
}

// retry makes a request again until it is answered.
func retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ended := deployment.Sleep(ctx, 100*time.Millisecond); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// insist makes a request again that the log has not answered in time, as on a
// disk that others keep busy. It may have been carried out, and conflict with
// itself.
func insist(ctx context.Context, f func() error) error {
	for again := false; ; again = true {
		err := f()
		refused, ok := errors.AsType[*refusal](err)
		switch {
		case again && ok && refused.status == http.StatusConflict:
			return nil
		case !ok || refused.status != http.StatusServiceUnavailable || deployment.Sleep(ctx, time.Second) != nil:
			return err
		}
	}
}

// each calls f with 0 to n-1, so many at a time, until one fails.
func each(n, at int, f func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, at)
	for w := range at {
		all.Go(func() {
			for i := w; i < n && errs[w] == nil; i += at {
				errs[w] = f(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
