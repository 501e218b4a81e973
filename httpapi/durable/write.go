package durable

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// MaxBody is the largest body of a PUT or a POST, in bytes.
const MaxBody = 8 << 20

// Create answers PUT.
func (s *Routes) Create(w http.ResponseWriter, r *web.Request) error {
	c := durable.Create{Closed: closes(r.Header)}
	var err error
	if c.ContentType, err = contentType(r.Header); err != nil {
		return err
	}
	if err := expiry(r.Header, &c); err != nil {
		return err
	}
	if c.Fork, err = fork(r.Header); err != nil {
		return err
	}
	if c.Fork != nil {
		// A fork reads its source.
		if err := r.Allow(auth.OpStream, c.Fork.Source); err != nil {
			return err
		}
		if err := r.Own(c.Fork.Source, false); err != nil {
			return err
		}
	}
	if c.Data, err = r.ReadAny(w, MaxBody); err != nil {
		return err
	}
	ctx, cancel := r.Detached() // a client that leaves must not leave half of it
	defer cancel()
	after, created, err := s.streams.Create(ctx, r.Session, owner(r), c)
	switch {
	case errors.Is(err, durable.ErrGone): // its name is taken
		return durable.ErrExists
	case err != nil:
		return err
	}
	h := w.Header()
	h.Set("Content-Type", after.ContentType)
	h.Set(headerNextOffset, durable.Tail(&after).String())
	setClosed(h, after.Closed)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		h.Set("Location", location(r.Request))
	}
	w.WriteHeader(status)
	return nil
}

// location returns the absolute address of a request.
func location(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	path := r.URL.EscapedPath()
	if strings.HasPrefix(r.RequestURI, "/") { // with what a handler in front has removed
		path, _, _ = strings.Cut(r.RequestURI, "?")
	}
	return scheme + "://" + r.Host + path
}

// Append answers POST.
func (s *Routes) Append(w http.ResponseWriter, r *web.Request) error {
	a := durable.Append{Close: closes(r.Header)}
	var err error
	if a.Producer, err = producer(r.Header); err != nil {
		return err
	}
	if a.WriterSeq, _, err = one(r.Header, headerSeq); err != nil {
		return err
	}
	if a.WriterSeq != "" && eventlog.ValidateID(a.WriterSeq) != nil {
		return web.Invalid(headerSeq, "must be text")
	}
	if a.Data, err = r.ReadAny(w, MaxBody); err != nil {
		return err
	}
	if len(a.Data) > 0 { // a close alone may have any
		if a.ContentType, err = contentType(r.Header); err != nil {
			return err
		}
	}
	switch {
	case len(a.Data) == 0 && !a.Close:
		return &eventlog.ValidationError{Reason: "the body must not be empty, unless the request closes the stream"}
	case len(a.Data) > 0 && a.ContentType == "":
		return web.Invalid("Content-Type", "is required")
	}
	turn, err := r.ParseTurn()
	if err != nil {
		return err
	}
	err = a.Parse()
	if turn(); err != nil {
		return err
	}
	ctx, cancel := r.Detached() // a client that leaves does not make the outcome unknown
	defer cancel()
	done, err := s.streams.Append(ctx, r.Session, owner(r), a)
	h := w.Header()
	if err != nil {
		refuse(h, err, done)
		return err
	}
	h.Set(headerNextOffset, done.Tail.String())
	setClosed(h, done.Closed)
	status := http.StatusNoContent
	if a.Producer != nil {
		h.Set(headerProducerEpoch, strconv.FormatInt(a.Producer.Epoch, 10))
		h.Set(headerProducerSeq, strconv.FormatInt(done.Seq, 10))
		if !done.Repeated && len(a.Data) > 0 {
			status = http.StatusOK
		}
	}
	w.WriteHeader(status)
	return nil
}

// refuse sets the headers of an append that was refused.
func refuse(h http.Header, err error, done durable.Appended) {
	if fenced, is := errors.AsType[*durable.FencedError](err); is {
		h.Set(headerProducerEpoch, strconv.FormatInt(fenced.Epoch, 10))
	}
	if gap, is := errors.AsType[*durable.GapError](err); is {
		h.Set(headerProducerExpected, strconv.FormatInt(gap.Expected, 10))
		h.Set(headerProducerReceived, strconv.FormatInt(gap.Received, 10))
	}
	if errors.Is(err, durable.ErrClosed) {
		h.Set(headerNextOffset, done.Tail.String())
		setClosed(h, true)
	}
}
