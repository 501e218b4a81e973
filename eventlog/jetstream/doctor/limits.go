package doctor

import (
	"context"
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
)

const (
	// leastPayload is the largest message in bytes that helixd sends, headers included,
	// rounded up: a server's default.
	leastPayload = 1 << 20
	// fullWarning and fullProblem are how full a limit may be, in percent.
	fullWarning = 80
	fullProblem = 95
)

// transport checks the largest message that the server accepts from a client.
func (x *exam) transport(context.Context) error {
	if !x.nc.HeadersSupported() {
		x.over = true
		x.limited(x.nc.ConnectedServerName(), Problem, "the server takes no headers", "remove no_header_support from the NATS server's configuration")
	}
	if n := x.nc.MaxPayload(); n < leastPayload {
		x.limited(x.nc.ConnectedServerName(), Problem, fmt.Sprintf("the largest message is %s", size(uint64(n))),
			"set max_payload to 1MB or more in the NATS server's configuration, and the payload limit of the account and of helixd's user, where there is one")
	}
	return nil
}

func (x *exam) limited(target string, status Health, found, advice string) {
	x.strained = append(x.strained, target)
	x.Report(Check{ID: CheckLimits, Status: status, Target: target, Found: found, Advice: advice})
}

// limits compares the limits of the account and the streams with their use.
func (x *exam) limits(ctx context.Context) error {
	x.streamLimits()
	if x.denied[infoAPI] {
		x.limited(infoAPI, Warning, "what the account may store is not known", "allow the user that helixd connects as to publish to "+infoAPI)
		return nil
	}
	try, cancel := context.WithTimeout(ctx, link.AnswerTimeout)
	defer cancel()
	info, err := x.js.AccountInfo(try)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		x.limited("account", Warning, fmt.Sprintf("what the account may store is not known: %v", err), "see that all JetStream servers run: nats server report jetstream")
		return nil
	}
	tier := info.Tier
	if len(info.Tiers) > 0 {
		name := fmt.Sprintf("R%d", x.replicasOf())
		t, ok := info.Tiers[name]
		if !ok {
			x.limited("account", Problem, fmt.Sprintf("the account may have no streams with %s", streams.Count(x.replicasOf(), "replica")),
				fmt.Sprintf("give the account limits for tier %s (nsc edit account --js-tier %d …), or change nats.replicas", name, x.replicasOf()))
			return nil
		}
		tier = t
	}
	x.accountLimits(tier)
	if len(x.strained) == 0 {
		of := "unlimited storage"
		if tier.Limits.MaxStore > 0 {
			of = "of " + size(uint64(tier.Limits.MaxStore))
		}
		x.OK(CheckLimits, "%s stored (%s), messages up to %s", size(tier.Store), of, size(uint64(x.nc.MaxPayload())))
	}
	return nil
}

// replicasOf returns how many replicas a stream has, or will have.
func (x *exam) replicasOf() int {
	n := max(x.opts.Replicas, 1)
	for _, s := range x.logStreams() {
		n = max(n, s.Config.Replicas)
	}
	return n
}

func (x *exam) accountLimits(t natsjs.Tier) {
	missing := 0
	for _, w := range x.wants {
		if w.info == nil && !w.silent {
			missing++
		}
	}
	l := t.Limits
	if l.MaxStore == 0 && l.MaxMemory != 0 {
		x.limited("account", Problem, "the account may store nothing in files", "give the account disk storage (max_file, or nsc edit account --js-disk-storage)")
	}
	if l.MaxStore > 0 {
		x.full("account", "storage", t.Store, uint64(l.MaxStore), "raise the account's storage limit (max_file, or nsc edit account --js-disk-storage), or remove old sessions: helixd retain")
	}
	if l.MaxStreams > 0 && t.Streams+missing > l.MaxStreams {
		x.limited("account", Problem, fmt.Sprintf("the account may have %s and has %d; helixd creates %d more", streams.Count(l.MaxStreams, "stream"), t.Streams, missing),
			fmt.Sprintf("raise the account's limit of streams (max_streams) to %d", t.Streams+missing))
	}
	if l.MaxBytesRequired && missing > 0 {
		x.limited("account", Problem, "the account demands max_bytes of every stream, and helixd's have none",
			"unset max_bytes_required of the account (max_stream_bytes_required, or nsc edit account --js-max-bytes-required=false)")
	}
}

// streamLimits checks the limits that an operator has set on the streams: at such a
// limit, with discard new, appends are refused.
func (x *exam) streamLimits() {
	for _, s := range x.existing(nil) {
		name := s.Config.Name
		if s.Config.MaxBytes > 0 {
			x.full(name, "max_bytes", s.State.Bytes, uint64(s.Config.MaxBytes), fmt.Sprintf("raise max_bytes of stream %s (nats stream edit %s --max-bytes …), or remove old sessions: helixd retain", name, name))
		}
		if s.Config.MaxMsgs > 0 {
			x.full(name, "max_msgs", s.State.Msgs, uint64(s.Config.MaxMsgs), fmt.Sprintf("raise max_msgs of stream %s (nats stream edit %s --max-msgs …), or remove old sessions: helixd retain", name, name))
		}
	}
}

// full reports a limit that is nearly reached.
func (x *exam) full(target, limit string, used, allowed uint64, advice string) {
	percent := 100 * float64(used) / float64(allowed)
	shown := fmt.Sprintf("%s: %s of %s are used (%.0f %%)", limit, size(used), size(allowed), percent)
	if limit == "max_msgs" {
		shown = fmt.Sprintf("%s: %d of %d are used (%.0f %%)", limit, used, allowed, percent)
	}
	if target != "account" {
		shown = "stream " + target + ": " + shown
	}
	switch {
	case percent >= fullProblem:
		x.limited(target, Problem, shown, advice)
	case percent >= fullWarning:
		x.limited(target, Warning, shown, advice)
	}
}

// size formats a number of bytes.
func size(n uint64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/(1<<10), 0
	for f >= 1<<10 && unit < len(units)-1 {
		f, unit = f/(1<<10), unit+1
	}
	return fmt.Sprintf("%.4g %s", f, units[unit])
}
