package durable

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/httpapi/internal/web"
)

const (
	// answerBytes is from which size on an answer ends, at the next end of an append.
	answerBytes = 1 << 20
	// pollTimeout is how long a long poll waits.
	pollTimeout = 20 * time.Second
	// followTimeout is how long a stream of server-sent events lasts.
	followTimeout = 60 * time.Second
)

// The values of the parameter live.
const (
	livePoll = "long-poll"
	liveSSE  = "sse"
)

// opener opens what a request reads.
type opener func(context.Context) (*durable.View, error)

// Read answers GET and HEAD of a stream.
func (s *Routes) Read(w http.ResponseWriter, r *web.Request) error {
	return s.read(w, r, func(ctx context.Context) (*durable.View, error) { return s.streams.Open(ctx, r.Session) })
}

// ReadSession answers GET and HEAD of a session.
func (s *Routes) ReadSession(w http.ResponseWriter, r *web.Request) error {
	return s.read(w, r, func(ctx context.Context) (*durable.View, error) { return s.streams.OpenSession(ctx, r.Session) })
}

func (s *Routes) read(w http.ResponseWriter, r *web.Request, open opener) error {
	live := r.Query.Values.Get("live")
	if live != "" && live != livePoll && live != liveSSE {
		return web.Invalid("live", "must be "+livePoll+" or "+liveSSE)
	}
	offset := r.Query.Values.Get("offset")
	switch given := r.Query.Values.Has("offset"); {
	case given && offset == "":
		return web.Invalid("offset", "must not be empty")
	case !given && live != "":
		return web.Invalid("offset", "is required with live")
	}
	v, err := open(r.Context())
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return describe(w, v)
	}
	if v.State != nil {
		if err := s.streams.Use(r.Context(), r.Session, v.State); err != nil {
			return err
		}
	}
	var from durable.Offset
	switch offset {
	case "", "-1":
	case "now":
		from = v.Tail
	default:
		if from, err = parseOffset("offset", offset); err != nil {
			return err
		}
	}
	switch {
	case live == liveSSE:
		return s.follow(w, r, v, from)
	case live == livePoll && from.Position == v.Tail.Position && !v.Closed:
		return s.poll(w, r, v, open)
	}
	return answer(w, r, v, from)
}

// describe answers HEAD.
func describe(w http.ResponseWriter, v *durable.View) error {
	h := w.Header()
	h.Set("Content-Type", v.ContentType)
	h.Set("Cache-Control", "no-store")
	h.Set(headerNextOffset, v.Tail.String())
	setClosed(h, v.Closed)
	if d := v.State; d != nil && d.TTL != nil {
		h.Set(headerTTL, strconv.FormatInt(*d.TTL, 10))
	} else if d != nil && d.ExpiresAt != "" {
		h.Set(headerExpiresAt, d.ExpiresAt)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// batch is the body of an answer.
type batch struct {
	body   []byte
	empty  bool
	next   durable.Offset
	atTail bool
}

// collect returns what a view has from an offset on, up to about answerBytes.
func collect(ctx context.Context, v *durable.View, from durable.Offset) (batch, error) {
	b := batch{next: v.Tail, atTail: true, empty: true}
	json := durable.IsJSON(v.ContentType)
	for p, err := range v.Pieces(ctx, from) {
		if err != nil {
			return b, err
		}
		if b.empty = b.empty && p.Empty(); json {
			b.body = appendMessages(b.body, p)
		} else {
			b.body = append(b.body, p.Bytes...)
		}
		if len(b.body) >= answerBytes {
			b.next, b.atTail = p.Next, p.Next.Position == v.Tail.Position
			break
		}
	}
	if json {
		if len(b.body) == 0 {
			b.body = append(b.body, '[')
		}
		b.body = append(b.body, ']')
	}
	return b, nil
}

// appendMessages appends to an array that is open, or opens it.
func appendMessages(b []byte, p durable.Piece) []byte {
	for _, m := range p.Messages {
		if len(b) == 0 {
			b = append(b, '[')
		} else {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	return b
}

// answer answers with what there is.
func answer(w http.ResponseWriter, r *web.Request, v *durable.View, from durable.Offset) error {
	b, err := collect(r.Context(), v, from)
	if errors.Is(err, durable.ErrOffset) {
		return web.Invalid("offset", "is none of this stream")
	}
	if err != nil {
		return err
	}
	poll := r.Query.Values.Get("live") == livePoll
	h := w.Header()
	h.Add("Vary", "Authorization") // a browser's cache must not give it to another caller
	h.Set(headerNextOffset, b.next.String())
	if b.atTail {
		h.Set(headerUpToDate, "true")
		setClosed(h, v.Closed)
	}
	if poll && !(b.atTail && v.Closed) {
		h.Set(headerCursor, cursor(r.Query.Values.Get("cursor"), time.Now()))
	}
	if poll && b.empty {
		h.Set("Cache-Control", "no-store")
		return r.Nothing(w)
	}
	h.Set("Cache-Control", "private, no-cache")
	if !b.atTail { // it never changes
		h.Set("Cache-Control", "private, max-age=60, stale-while-revalidate=300")
	}
	if r.Query.Values.Get("offset") == "now" {
		h.Set("Cache-Control", "no-store")
		return r.RespondBytes(w, http.StatusOK, v.ContentType, b.body)
	}
	tag := `"` + v.Name + ":" + from.String() + ":" + b.next.String()
	if b.atTail && v.Closed {
		tag += ":c"
	}
	tag += `"`
	h.Set("ETag", tag)
	if web.HasTag(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return r.RespondBytes(w, http.StatusOK, v.ContentType, b.body)
}

// poll waits for something after the end of a stream, and answers with it.
func (s *Routes) poll(w http.ResponseWriter, r *web.Request, v *durable.View, open opener) error {
	return r.Streaming(r.Session, func(ctx context.Context) error {
		waiting, cancel := context.WithTimeout(ctx, pollTimeout)
		defer cancel()
		defer s.keep(waiting, r, v)()
		for _, err := range v.Follow(waiting) {
			if err != nil && (ctx.Err() != nil || waiting.Err() == nil) {
				return err
			}
			break
		}
		now, err := open(ctx)
		if err != nil {
			return err
		}
		return answer(w, r, now, v.Tail)
	})
}

// keep renews the TTL of a stream while a client follows it, until done is called.
func (s *Routes) keep(ctx context.Context, r *web.Request, v *durable.View) (done func()) {
	if v.State == nil || v.State.TTL == nil || time.Duration(*v.State.TTL)*time.Second > 2*followTimeout {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(max(time.Duration(*v.State.TTL)*time.Second/4, 100*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = s.streams.Use(ctx, r.Session, v.State) // the next one tries again
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
