package remotehttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop/model/sse"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/agentloop/remote"
)

// MaxErrorText is how much of a server's message is kept, in bytes.
const MaxErrorText = 8 << 10

// maxErrorBody is how much of an error answer is read, in bytes.
const maxErrorBody = 64 << 10

var codePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Status returns the answer's status.
func (x *Response) Status() int { return x.res.StatusCode }

// OK reports whether the answer is one of 2xx.
func (x *Response) OK() bool { return x.res.StatusCode >= 200 && x.res.StatusCode <= 299 }

// Header returns the answer's headers.
func (x *Response) Header() http.Header { return x.res.Header }

// Is reports whether the answer is of a media type.
func (x *Response) Is(mediaType string) bool {
	media, _, _ := mime.ParseMediaType(x.res.Header.Get("Content-Type"))
	return media == mediaType
}

// Framed reports whether the end of the body can be distinguished from a connection
// that was cut. An answer of HTTP/1 without a length and without chunks, as old
// proxies send it, just ends with its connection.
func (x *Response) Framed() bool {
	return x.res.ProtoMajor > 1 || x.res.ContentLength >= 0 || len(x.res.TransferEncoding) > 0 || x.res.Uncompressed
}

// Alive returns for how long the server has been heard of: from the answer's
// beginning to what came of its body last, heartbeats included.
func (x *Response) Alive() time.Duration { return x.heard.Sub(x.begun) }

// Read reads the answer's body. Its errors are the connection's.
func (x *Response) Read(p []byte) (int, error) {
	x.timer.Reset(x.idle)
	n, err := x.res.Body.Read(p)
	x.timer.Stop()
	if n > 0 {
		x.heard = time.Now()
	}
	return n, err
}

// Close ends the request. What was not read is not waited for.
func (x *Response) Close() {
	x.res.Body.Close()
	x.timer.Stop()
	x.cancel(nil)
}

// drain reads a short rest, so that the connection can be used again.
func (x *Response) drain() { _, _ = io.CopyN(io.Discard, x, maxErrorBody) }

// Decode reads the body, which is JSON of at most limit bytes, into v.
func (x *Response) Decode(v any, limit int) error {
	body, err := io.ReadAll(io.LimitReader(x, int64(limit)+1))
	switch {
	case err != nil:
		return x.lost(remote.ErrUnreachable, err)
	case len(body) > limit:
		return fmt.Errorf("%w: more than %d bytes", remote.ErrTooLarge, limit)
	}
	if json.Unmarshal(bytes.ToValidUTF8(body, []byte(string(utf8.RuneError))), v) != nil {
		return fmt.Errorf("%w: it is not the JSON that was asked for", remote.ErrMalformed)
	}
	return nil
}

// Lines yields the lines of the body, each at most limit bytes and valid until
// the next one. Unless an error is last, they are all of them.
func (x *Response) Lines(limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for in := sse.NewReader(x, limit); ; {
			line, err := in.Line()
			switch {
			case err == io.EOF && !in.Partial():
				return
			case err != nil:
				yield(nil, x.lost(remote.ErrStreamDropped, err))
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

// Refusal returns the error that an answer other than 2xx is, and its body. A
// body that is not of the protocol's form, such as a proxy's page, is not
// shown by the error.
func (x *Response) Refusal() (*remote.Error, []byte) {
	e := &remote.Error{Status: x.res.StatusCode, RetryAfter: upstream.RetryAfter(x.res.Header)}
	var body struct {
		Error, Code string
	}
	raw, _ := io.ReadAll(io.LimitReader(x, maxErrorBody))
	if json.Unmarshal(raw, &body) == nil {
		e.Message = x.Hide(body.Error)
		if codePattern.MatchString(body.Code) {
			e.Code = body.Code
		}
	}
	return e, raw
}

// Hide returns a text of the server's as it may be shown: valid UTF-8 without
// what the request's headers held and without URLs, at most [MaxErrorText]
// bytes.
func (x *Response) Hide(text string) string { return shown(text, x.hide) }

func shown(text string, hide upstream.Secrets) string {
	return upstream.Cut(hide.Hide(text, "[hidden]"), MaxErrorText)
}

// lost says what an error of a read means: the caller's context has ended, something is too
// large, or the connection is lost.
func (x *Response) lost(kind, err error) error {
	if long, ok := errors.AsType[*sse.TooLongError](err); ok {
		return fmt.Errorf("%w: %w", remote.ErrTooLarge, long)
	}
	if cause := context.Cause(x.ctx); cause != nil {
		return cause
	}
	if errors.Is(context.Cause(x.attempt), errSilent) {
		err = errSilent
	}
	return &lost{kind, err}
}
