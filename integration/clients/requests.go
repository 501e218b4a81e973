package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// run has the daemon's agent begin a session.
func (d *daemon) run(ctx context.Context, session string) error {
	return d.insist(ctx, "/start", map[string]any{"sessionId": session, "agentType": "writer", "message": prompt(session)})
}

// begin makes a session that continues for ever.
func (d *daemon) begin(ctx context.Context, session string) error {
	return d.insist(ctx, "/sessions/"+session+"/chunks", map[string]any{
		"type": "custom", "eventName": "begun", "data": 1, "agentId": session, "agentType": "writer", "timestamp": 1, "step": 1,
	})
}

// append appends a chunk as an outside producer does.
func (d *daemon) append(ctx context.Context, session, text string) error {
	_, err := d.post(ctx, "/sessions/"+session+"/chunks", map[string]any{
		"type": "text_delta", "delta": text, "agentId": session, "agentType": "writer", "timestamp": 1, "step": 1,
	})
	return err
}

// insist posts again what the log has not answered in time, as on a disk that
// others keep busy. It may have been carried out, and conflict with itself.
func (d *daemon) insist(ctx context.Context, path string, body any) error {
	for again := false; ; again = true {
		status, err := d.post(ctx, path, body)
		switch {
		case again && status == http.StatusConflict:
			return nil
		case status != http.StatusServiceUnavailable || deployment.Sleep(ctx, time.Second) != nil:
			return err
		}
	}
}

func (d *daemon) post(ctx context.Context, path string, body any) (status int, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+path, bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("POST %s: %s: %s", path, resp.Status, answer)
	}
	return resp.StatusCode, err
}

// chunk is what is looked at of a chunk event. It is valid until the next one.
type chunk struct {
	kind  string
	delta []byte
}

// follow reads a session's stream until ctx ends. That it ends before is an
// error.
func (d *daemon) follow(ctx context.Context, session string, hear func(chunk) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL+"/sse?sessionId="+url.QueryEscape(session), nil)
	if err != nil {
		return err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable && deployment.Sleep(ctx, time.Second) == nil { // as insist
		resp.Body.Close()
		return d.follow(ctx, session, hear)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /sse of %s: %s", session, resp.Status)
	}
	if err := readStream(resp.Body, hear); ctx.Err() == nil {
		return fmt.Errorf("the stream of %s: %w", session, err)
	}
	return nil
}

// readStream reads events of /sse to the end, io.EOF. It looks for what it
// needs without decoding the JSON: the machine's time is the daemon's.
func readStream(r io.Reader, hear func(chunk) error) error {
	in := bufio.NewReaderSize(r, 4<<10) // a chunk of this load fits
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("event: ")) && string(line) != "event: chunk\n" {
			return fmt.Errorf("an %s", bytes.TrimSpace(line))
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			if err := hear(chunk{kind: string(member(line, `"chunk":{"type":"`)), delta: member(line, `"delta":"`)}); err != nil {
				return err
			}
		}
	}
}

// member returns the text after the mark, up to the next quotation mark.
func member(line []byte, mark string) []byte {
	_, rest, _ := bytes.Cut(line, []byte(mark))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return text
}
