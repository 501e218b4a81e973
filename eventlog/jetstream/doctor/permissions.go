package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// doctorToken is used in subjects in place of a session's or a node's name.
	doctorToken = "helixd-doctor"
	// noStream is the stream that a probe expects, so that no stream accepts it.
	noStream = "HELIX_DOCTOR_EXPECTS_ANOTHER"
	// noLevel is an API level that no server has, so that it does not read the request.
	noLevel = "1000000"

	infoAPI = "$JS.API.INFO"
)

// probe is a subject to which helixd publishes or subscribes.
type probe struct {
	subject   string
	pattern   string // the right that helixd needs; subject matches it
	subscribe bool
	header    nats.Header
	body      string
	why       string // the part of helixd that needs it
}

// request is a probe of JetStream's API. The server refuses it unread for its level; a
// server without levels fails to decode its body.
func request(why, subject string) probe {
	return probe{subject: subject, pattern: subject, header: nats.Header{"Nats-Required-Api-Level": {noLevel}}, body: "{", why: why}
}

// storing is a probe of subjects from which a stream takes messages.
func storing(why, pattern string) probe {
	return probe{
		subject: concrete(pattern), pattern: pattern, why: why,
		header: nats.Header{natsjs.ExpectedStreamHeader: {noStream}},
	}
}

func hear(why, pattern string) probe {
	return probe{subject: concrete(pattern), pattern: pattern, subscribe: true, why: why}
}

// inbox checks that answers arrive: without them nothing else can be checked.
func (x *exam) inbox(ctx context.Context) error {
	const why = "hear answers"
	inbox := x.nc.NewInbox()
	before := x.nc.LastError()
	sub, err := x.nc.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	refused, err := x.refusedSince(ctx, before)
	if err != nil {
		return err
	}
	if refused {
		x.refuse(why, []probe{{pattern: inboxOf(inbox), subscribe: true}})
		x.over = true
	}
	return nil
}

// inboxOf returns the subject on which a user with this inbox needs the right to
// subscribe.
func inboxOf(inbox string) string {
	prefix, _, _ := strings.Cut(inbox, ".")
	return prefix + ".>"
}

// permissions tries every subject that helixd uses with the existing streams.
func (x *exam) permissions(ctx context.Context) error {
	all := slices.Concat(x.generalProbes(), x.streamProbes())
	refused, err := x.tryAll(ctx, all)
	if err != nil {
		return err
	}
	answers, err := x.answers(ctx)
	if err != nil {
		return err
	}
	refused = append(refused, answers...)
	bad := false
	for len(refused) > 0 {
		why := refused[0].why
		x.refuse(why, slices.DeleteFunc(slices.Clone(refused), func(p probe) bool { return p.why != why }))
		refused = slices.DeleteFunc(refused, func(p probe) bool { return p.why == why })
		bad = true
	}
	if !bad {
		x.OK(CheckPermissions, "helixd's user may use all of %s", streams.Count(len(all)+1, "subject"))
	}
	return nil
}

// refuse reports refused probes with one reason.
func (x *exam) refuse(why string, refused []probe) {
	var publish, subscribe []string
	for _, p := range refused {
		if p.subscribe {
			subscribe = append(subscribe, p.pattern)
		} else {
			publish = append(publish, p.pattern)
		}
	}
	for _, kind := range []struct {
		verb     string
		subjects []string
	}{{"publish", publish}, {"subscribe", subscribe}} {
		if len(kind.subjects) > 0 {
			x.Problem(CheckPermissions, kind.subjects[0], fmt.Sprintf("helixd's user may not %s to %s: it is needed to %s", kind.verb, shortened(kind.subjects), why),
				fmt.Sprintf("allow the user that helixd connects as to %s to %s", kind.verb, listing(kind.subjects)))
		}
	}
}

// generalProbes returns the probes that belong to no stream.
func (x *exam) generalProbes() (probes []probe) {
	probes = append(probes, hear("follow sessions", layout.LiveSubjects+"*"))
	const why = "talk to the other nodes"
	for _, s := range slices.Concat(x.opts.Subjects, []string{store.HoldSubjects + "*"}) {
		probes = append(probes, hear(why, s), probe{subject: concrete(s), pattern: s, why: why})
	}
	return probes
}

// logAPI is the part of JetStream's API that is used on the log's streams.
var logAPI = []string{
	"STREAM.MSG.GET", "DIRECT.GET", "STREAM.MSG.DELETE",
	"CONSUMER.CREATE.>", "CONSUMER.MSG.NEXT.>", "CONSUMER.DELETE.>", // of Feed
}

// streamProbes returns the probes of the streams: the subjects stored in them, and the
// part of JetStream's API that they need.
func (x *exam) streamProbes() (probes []probe) {
	const api = "$JS.API."
	for _, w := range x.wants {
		name := w.config.Name
		for _, s := range w.config.Subjects {
			probes = append(probes, storing("store into stream "+name, s))
		}
		if w.info == nil && !w.silent {
			probes = append(probes, request("create stream "+name, api+"STREAM.CREATE."+name))
		}
		for _, verb := range append([]string{"STREAM.INFO"}, w.api...) {
			verb, more := strings.CutSuffix(verb, ".>")
			p := request(apiUse(verb)+" stream "+name, api+verb+"."+name)
			if more {
				p.pattern += ".>"
				p.subject = concrete(p.pattern)
			}
			probes = append(probes, p)
		}
	}
	return probes
}

// apiUse returns the purpose of a part of the API.
func apiUse(verb string) string {
	switch verb {
	case "STREAM.UPDATE":
		return "set up"
	case "STREAM.MSG.DELETE":
		return "erase in"
	case "STREAM.PURGE":
		return "remove old records from"
	case "CONSUMER.CREATE", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE":
		return "keep read models of"
	}
	return "read"
}

// concrete replaces the wildcards of a stream's subject by the doctor's token.
func concrete(pattern string) string {
	return strings.NewReplacer("*", doctorToken, ">", doctorToken).Replace(pattern)
}

// answers checks that this client may answer requests of others.
func (x *exam) answers(ctx context.Context) (refused []probe, err error) {
	if len(x.opts.Subjects) == 0 {
		return nil, nil
	}
	subject := concrete(x.opts.Subjects[0])
	sub, err := x.nc.SubscribeSync(subject)
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	inbox := x.nc.NewInbox()
	if err := x.nc.PublishRequest(subject, inbox, nil); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	if err := x.flush(ctx); err != nil {
		return nil, err
	}
	m, err := sub.NextMsg(time.Second)
	if err != nil {
		return nil, nil //nolint:nilerr // the subject itself is refused, and that is reported
	}
	before := x.nc.LastError()
	if err := m.Respond(nil); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	no, err := x.refusedSince(ctx, before)
	if no {
		refused = append(refused, probe{pattern: inboxOf(inbox), why: "answer other nodes, unless allow_responses is set"})
	}
	return refused, err
}

// tryAll returns the probes that the server refuses. It tries many at once, and tries
// each of them if one was refused.
func (x *exam) tryAll(ctx context.Context, probes []probe) (refused []probe, err error) {
	for few := range slices.Chunk(probes, 20) {
		no, err := x.try(ctx, few...)
		if err != nil {
			return nil, err
		}
		if !no {
			continue
		}
		for _, p := range few {
			no, err := x.try(ctx, p)
			if err != nil {
				return nil, err
			}
			if no {
				refused = append(refused, p)
				x.denied[p.subject] = x.denied[p.subject] || !p.subscribe
			}
		}
	}
	return refused, nil
}

// try reports whether the server refuses any of the probes.
func (x *exam) try(ctx context.Context, probes ...probe) (refused bool, err error) {
	before := x.nc.LastError()
	for _, p := range probes {
		if p.subscribe {
			sub, err := x.nc.SubscribeSync(p.subject)
			if err != nil {
				return false, fmt.Errorf("nats: subscribe to %s: %w", p.subject, err)
			}
			defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
			continue
		}
		m := &nats.Msg{Subject: p.subject, Header: p.header, Data: []byte(p.body)}
		if err := x.nc.PublishMsg(m); err != nil {
			return false, fmt.Errorf("nats: publish to %s: %w", p.subject, err)
		}
	}
	return x.refusedSince(ctx, before)
}

// refusedSince reports whether the server has refused anything since before was its last
// error. Refusals arrive before the answer to a ping.
func (x *exam) refusedSince(ctx context.Context, before error) (bool, error) {
	if err := x.flush(ctx); err != nil {
		return false, err
	}
	now := x.nc.LastError()
	return now != before && errors.Is(now, nats.ErrPermissionViolation), nil
}

func (x *exam) flush(ctx context.Context) error {
	try, cancel := context.WithTimeout(ctx, link.AnswerTimeout)
	defer cancel()
	if err := x.nc.FlushWithContext(try); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	return nil
}
