package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// run has the daemon's agent begin a session.
func (d *daemon) run(ctx context.Context, session string) error {
	return deployment.Insist(deployment.ASecond(ctx), func() error {
		_, err := d.API.Start(ctx, client.StartRequest{SessionID: session, AgentType: "writer", Messages: client.Text(prompt(session))})
		return err
	}, api.CodeAlreadyRunning)
}

// begin makes a session that continues for ever.
func (d *daemon) begin(ctx context.Context, session string) error {
	return deployment.Insist(deployment.ASecond(ctx), func() error {
		begun := &eventlog.CustomEvent{Base: eventlog.Base{AgentID: session, AgentType: "writer", Timestamp: 1}, EventName: "begun", Data: json.RawMessage("1")}
		_, err := d.API.AppendChunks(ctx, session, []eventlog.Chunk{begun}, client.AppendOptions{})
		return err
	})
}

// append appends a chunk as an outside producer does.
func (d *daemon) append(ctx context.Context, session, text string) error {
	_, err := d.API.AppendChunks(ctx, session, deployment.TextChunk(session, text), client.AppendOptions{})
	return err
}

// chunk is what is looked at of a chunk event. It is valid until the next one.
type chunk struct {
	kind  string
	delta []byte
}

// follow reads a session's stream until ctx ends. That it ends before is an
// error.
func (d *daemon) follow(ctx context.Context, session string, hear func(chunk) error) error {
	var stream *remotehttp.Response
	err := deployment.Insist(deployment.ASecond(ctx), func() (err error) {
		stream, err = deployment.Connect(ctx, d.API, session, 0, -1)
		return err
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := readStream(stream, hear); ctx.Err() == nil {
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
