package client

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// appendIdle is how long the server may take to answer an append: 2 min for
// the largest body, and 30 s to write it.
const appendIdle = 3 * time.Minute

// AppendOptions make an append safe to be repeated: one with either of them is,
// one without is not.
type AppendOptions struct {
	// IdempotencyKey, of 1 to 256 bytes, has the server carry out the append
	// once: the same key is answered the same, and with another body refused
	// (IDEMPOTENCY_MISMATCH). A key is remembered until at least 4096 later
	// requests of the session have had one; of 131072 after that it is refused
	// (IDEMPOTENCY_EXPIRED), and then forgotten.
	IdempotencyKey string
	// ExpectedSequence, if set, is the session's head; 0: there must be no
	// such session. Else the append is refused (SEQUENCE_CONFLICT). Without a
	// key that may also mean that a first try was carried out.
	ExpectedSequence *uint64
}

func (o AppendOptions) on(k request) request {
	k.Header = map[string]string{}
	if o.IdempotencyKey != "" {
		k.Header[api.HeaderIdempotency] = o.IdempotencyKey
	}
	if o.ExpectedSequence != nil {
		k.Header[api.HeaderExpected] = strconv.FormatUint(*o.ExpectedSequence, 10)
	}
	k.safe = len(k.Header) > 0
	return k
}

func isAppended(a *api.Appended) bool { return a.Count > 0 }

// AppendChunks appends chunks of an outside producer, all or none: at most
// 1,000 chunks of 64 MiB together. The first ones begin the session.
func (c *Client) AppendChunks(ctx context.Context, sessionID string, chunks []eventlog.Chunk, o AppendOptions) (api.Appended, error) {
	k := request{}
	k.Method, k.Route, k.ContentType, k.Idle = "POST", "chunks", ndjson, appendIdle
	k = o.on(k).of("sessions", sessionID)
	var body bytes.Buffer
	for _, chunk := range chunks {
		line, err := eventlog.EncodeChunk(chunk)
		if err != nil {
			return api.Appended{}, err
		}
		body.Write(line)
		body.WriteByte('\n')
	}
	k.Body = body.Bytes()
	return fetch(ctx, c, k, isAppended)
}

// End ends the stream of an outside producer; it is complete. A nil output is
// none.
func (c *Client) End(ctx context.Context, sessionID string, output json.RawMessage, o AppendOptions) (api.Appended, error) {
	end := struct {
		FinalOutput json.RawMessage `json:"finalOutput,omitempty"`
	}{output}
	return fetch(ctx, c, o.on(post("end", false, end)).of("sessions", sessionID), isAppended)
}

// Fail ends the stream of an outside producer with an error, of 1 to 8,192
// bytes.
func (c *Client) Fail(ctx context.Context, sessionID, message string, o AppendOptions) (api.Appended, error) {
	failed := struct {
		Error string `json:"error"`
	}{message}
	return fetch(ctx, c, o.on(post("fail", false, failed)).of("sessions", sessionID), isAppended)
}
