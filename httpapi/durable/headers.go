package durable

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
	fold "github.com/helixd/helixd/projector/durable"
)

// one returns the value of a header, which may be given once, and whether it is there.
func one(h http.Header, name string) (value string, given bool, err error) {
	return oneOf(h, name, eventlog.MaxID)
}

// oneOf is one for a value of at most that many bytes.
func oneOf(h http.Header, name string, most int) (value string, given bool, err error) {
	switch v := h.Values(name); {
	case len(v) == 0:
		return "", false, nil
	case len(v) > 1:
		return "", true, web.Invalid(name, "is given twice")
	case len(v[0]) > most:
		return "", true, web.Invalid(name, "is too long")
	default:
		return v[0], true, nil
	}
}

// closes reports whether a request closes the stream. Other values than true count as none.
func closes(h http.Header) bool { return strings.EqualFold(h.Get(headerClosed), "true") }

// contentType returns the request's content type, "" if it has none.
func contentType(h http.Header) (string, error) {
	text, given, err := one(h, "Content-Type")
	if err != nil || !given || text == "" {
		return "", err
	}
	if _, _, err := mime.ParseMediaType(text); err != nil || !strings.Contains(text, "/") {
		return "", web.Invalid("Content-Type", "must be a media type")
	}
	return text, nil
}

// maxSafe is the largest number that JavaScript clients can count to.
const maxSafe = 1<<53 - 1

// digits returns a number that has no other form.
func digits(name, text string, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most || strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") {
		return 0, web.Invalid(name, "must be a whole number from 0 to "+strconv.FormatInt(most, 10))
	}
	return n, nil
}

// canonical is digits without leading zeros.
func canonical(name, text string, most int64) (int64, error) {
	if len(text) > 1 && text[0] == '0' {
		return 0, web.Invalid(name, "must have no leading zeros")
	}
	return digits(name, text, most)
}

// producer returns the producer's request, nil if the headers name none.
func producer(h http.Header) (*fact.DurableProducer, error) {
	var values [3]string
	present := 0
	for i, name := range []string{headerProducerID, headerProducerEpoch, headerProducerSeq} {
		value, given, err := one(h, name)
		if err != nil {
			return nil, err
		}
		if values[i] = value; given {
			present++
		}
	}
	switch present {
	case 0:
		return nil, nil
	case len(values):
	default:
		return nil, web.Invalid(headerProducerID, "goes with "+headerProducerEpoch+" and "+headerProducerSeq+": send all or none")
	}
	if err := eventlog.ValidateID(values[0]); err != nil {
		return nil, web.Invalid(headerProducerID, err.Error())
	}
	epoch, err := digits(headerProducerEpoch, values[1], maxSafe)
	if err != nil {
		return nil, err
	}
	seq, err := digits(headerProducerSeq, values[2], maxSafe)
	return &fact.DurableProducer{ID: values[0], Epoch: epoch, Seq: seq}, err
}

// expiry puts the expiry of a stream into a request to create it.
func expiry(h http.Header, c *durable.Create) error {
	ttl, hasTTL, err := one(h, headerTTL)
	if err != nil {
		return err
	}
	at, hasAt, err := one(h, headerExpiresAt)
	switch {
	case err != nil:
		return err
	case hasTTL && hasAt:
		return web.Invalid(headerTTL, "excludes "+headerExpiresAt)
	case hasTTL:
		seconds, err := canonical(headerTTL, ttl, fold.MaxTTL)
		c.TTL = &seconds
		return err
	case hasAt:
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			return web.Invalid(headerExpiresAt, "must be a time of RFC 3339")
		}
		c.ExpiresAt = at
	}
	return nil
}

// maxSource is the longest address of a fork's source, in bytes: each byte of its name may be
// escaped, and the address of the server may come first.
const maxSource = 3*eventlog.MaxDurableName + 1<<10

// fork returns where a stream that is to be created leaves another one, nil if it is new.
func fork(h http.Header) (*durable.Fork, error) {
	from, forks, err := oneOf(h, headerForkedFrom, maxSource)
	if err != nil {
		return nil, err
	}
	at, hasAt, err := one(h, headerForkOffset)
	if err != nil {
		return nil, err
	}
	past, hasPast, err := one(h, headerForkSubOffset)
	switch {
	case err != nil:
		return nil, err
	case !forks && (hasAt || hasPast):
		return nil, web.Invalid(headerForkedFrom, "is required for a fork")
	case !forks:
		return nil, nil
	}
	f := new(durable.Fork)
	_, raw, ok := strings.Cut(from, Prefix)
	name, err := url.PathUnescape(raw)
	if !ok || err != nil {
		return nil, web.Invalid(headerForkedFrom, "must be the path of a stream, such as "+Prefix+"name")
	}
	if f.Source, err = LogID(name); err != nil {
		return nil, err
	}
	if hasAt {
		offset, err := parseOffset(headerForkOffset, at)
		if err != nil {
			return nil, err
		}
		f.At = &offset
	}
	if hasPast {
		if f.Past, err = canonical(headerForkSubOffset, past, maxSafe); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func parseOffset(name, text string) (durable.Offset, error) {
	o, err := durable.ParseOffset(text)
	if err != nil {
		err = web.Invalid(name, "must be an offset that the server has given")
	}
	return o, err
}
