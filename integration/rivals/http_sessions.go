package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/helixd/helixd/integration/deployment"
)

// httpSessions appends to numbered sessions of a server, from any session on.
type httpSessions struct {
	*httpServer
	first     int // number of the first session
	templates []template
}

// sessions returns n sessions, created where that has to be. Other numbers from
// first on are of other sessions.
func (s *httpServer) sessions(ctx context.Context, first, n int) (*httpSessions, error) {
	h := &httpSessions{httpServer: s, first: first}
	for i := range n {
		h.templates = append(h.templates, newTemplate(sessionName(first+i)))
	}
	if !s.creates {
		return h, nil
	}
	return h, deployment.Each(n, 8, func(i int) error {
		return s.send(ctx, http.MethodPut, s.path(h.name(i)), nil)
	})
}

func (h *httpSessions) name(i int) string { return sessionName(h.first + i) }

// append is an appendFunc: one request, whose answer is the acknowledgement.
func (h *httpSessions) append(ctx context.Context, s, first, n int) error {
	var body bytes.Buffer
	body.Grow(n*(payloadBytes+1) + 2)
	body.WriteString(h.open)
	for i := range n {
		if i > 0 {
			body.WriteString(h.between)
		}
		body.Write(h.templates[s].payload(first + i))
	}
	body.WriteString(h.end)
	return h.send(ctx, http.MethodPost, h.path(h.name(s)), body.Bytes())
}

// send makes a request and reads its answer.
func (s *httpServer) send(ctx context.Context, method, path string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", s.contentType)
	res, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", s.system, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s: %s", s.system, res.Status, answer)
	}
	return err
}

// chunkMark is how every payload begins.
var chunkMark = []byte(`{"type":"text_delta"`)

// chunksIn calls hear with the number of each chunk of the session within a text, in
// their order, until it says done. A chunk that is no chunk of the session is -1.
func chunksIn(t template, text []byte, hear func(n int) (done bool, err error)) (done bool, err error) {
	for !done && err == nil {
		at := bytes.Index(text, chunkMark)
		if at < 0 {
			return false, nil
		}
		end := min(at+payloadBytes, len(text))
		done, err = hear(indexOf(t, text[at:end]))
		text = text[end:]
	}
	return done, err
}

// verify checks that sessions hold what they have acknowledged, and no more. It reads
// some of them.
func (h *httpSessions) verify(ctx context.Context, counts []int) error {
	for s := range counts {
		if s%max(1, len(counts)/verifySample) != 0 {
			continue
		}
		res, err := h.get(ctx, h.read(h.name(s)))
		if err != nil {
			return err
		}
		all, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return err
		}
		next := 0
		_, err = chunksIn(h.templates[s], all, func(n int) (bool, error) {
			if n != next {
				return false, fmt.Errorf("%s: %s has chunk %d where %d should be", h.system, h.name(s), n, next)
			}
			next++
			return false, nil
		})
		if err == nil && next != counts[s] {
			err = fmt.Errorf("%s: %s has %d chunks, not %d", h.system, h.name(s), next, counts[s])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *httpServer) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.system, err)
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return nil, fmt.Errorf("%s: %s: %s", s.system, res.Status, answer)
	}
	return res, nil
}

// follow is a followFunc of server-sent events, each follower on its own connection.
func (h *httpSessions) follow(a *audience) followFunc {
	return func(ctx context.Context, f int, hear func(int) (bool, error)) error {
		s := a.session(f)
		res, err := h.get(ctx, h.stream(h.name(s)))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		in := bufio.NewReaderSize(res.Body, followerBuffer)
		for {
			line, err := in.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) { // several chunks in one event
				line = bytes.Clone(line)
				var rest []byte
				rest, err = in.ReadBytes('\n')
				line = append(line, rest...)
			}
			if err != nil {
				return err
			}
			if done, err := chunksIn(h.templates[s], line, hear); done || err != nil {
				return err
			}
		}
	}
}
