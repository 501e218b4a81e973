package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	streamInfoAPI  = "$JS.API.STREAM.INFO."
	streamNamesAPI = "$JS.API.STREAM.NAMES"
)

// streams determines which of the streams exist.
func (x *exam) streams(ctx context.Context) error {
	if _, err := x.tryAll(ctx, []probe{{subject: streams.PeersSubject}, request("", infoAPI), request("", streamNamesAPI)}); err != nil {
		return err
	}
	numbers, err := x.partitions(ctx)
	if err != nil || x.over {
		return err
	}
	partitions := numbers[len(numbers)-1]
	for p := range partitions {
		for _, c := range streams.ConfigsOf(link.Options{Replicas: max(x.opts.Replicas, 1)}, numbers, p) {
			w := want{config: c, log: true, api: logAPI}
			if c.Name == layout.LogStream(p) {
				w.api = append(slices.Clone(logAPI), "STREAM.PURGE")
			}
			x.wants = append(x.wants, w)
		}
	}
	if x.opts.Neighbours != nil {
		for _, n := range x.opts.Neighbours(partitions) {
			x.wants = append(x.wants, want{config: natsjs.StreamConfig{Name: n.Name, Subjects: n.Subjects}, api: n.API})
		}
	}
	var names []probe
	for _, w := range x.wants {
		names = append(names, request("", streamInfoAPI+w.config.Name))
	}
	if _, err := x.tryAll(ctx, names); err != nil {
		return err
	}
	if err := x.askStreams(ctx); err != nil {
		return err
	}
	return x.tellStreams(ctx)
}

// partitions returns the present and earlier numbers of partitions, see NumbersIn, from
// the first stream, else from the options. It sends the first request to JetStream.
func (x *exam) partitions(ctx context.Context) ([]int, error) {
	n := []int{cmp.Or(x.opts.Partitions, link.Options{Replicas: x.opts.Replicas}.NewPartitions())}
	first := layout.LogStream(0)
	if refused, err := x.tryAll(ctx, []probe{request("", streamInfoAPI+first)}); err != nil || len(refused) > 0 {
		return n, err
	}
	info, err := x.info(ctx, first)
	switch {
	case errors.Is(err, natsjs.ErrStreamNotFound):
		x.OK(CheckJetStream, "enabled for this account")
		return n, nil
	case errors.Is(err, natsjs.ErrJetStreamNotEnabled), errors.Is(err, natsjs.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders):
		x.over = true
		x.Problem(CheckJetStream, "", "there is no JetStream for this account",
			"enable JetStream on the servers (jetstream {store_dir: …}) and for the account that helixd's user is in (accounts { … { jetstream: enabled } })")
		return n, nil
	case err != nil && ctx.Err() != nil:
		return n, context.Cause(ctx)
	case err != nil:
		x.over = true
		x.Problem(CheckJetStream, first, fmt.Sprintf("JetStream does not answer for stream %s: %v", first, err),
			"start the servers that are down: without more than half of a stream's servers, and of all JetStream servers, nothing is stored (nats server report jetstream)")
		return n, nil
	}
	x.OK(CheckJetStream, "enabled for this account")
	if err := streams.CheckFormat(info.Config); err != nil {
		x.over = true
		x.Problem(CheckFormat, first, strings.TrimPrefix(err.Error(), "jetstream: "), "run a version of helixd that reads the log's format, or restore a backup of this version into an empty deployment")
		return n, nil
	}
	numbers, ok := streams.NumbersIn(info.Config)
	if !ok {
		x.Problem(CheckPartitions, first, fmt.Sprintf("stream %s is not of a helixd log", first),
			fmt.Sprintf("rename or delete stream %s, which something else has made, or use another account", first))
		return n, nil
	}
	has := numbers[len(numbers)-1]
	switch {
	case x.opts.Partitions == 0 || x.opts.Partitions == has:
		x.OK(CheckPartitions, "%d", has)
	case x.opts.Partitions > has && x.opts.Grows:
		x.OK(CheckPartitions, "%d: helixd serve grows the log to %d", has, x.opts.Partitions)
	case x.opts.Partitions > has:
		x.Problem(CheckPartitions, "", fmt.Sprintf("there are %s, and nats.partitions is %d", streams.Count(has, "partition"), x.opts.Partitions),
			fmt.Sprintf("set nats.partitions to %d, or %s", has, streams.GrowAdvice))
	default:
		x.Problem(CheckPartitions, "", fmt.Sprintf("there are %s, and nats.partitions is %d", streams.Count(has, "partition"), x.opts.Partitions),
			fmt.Sprintf("set nats.partitions to %d: a log can't have fewer partitions than it had", has))
	}
	return numbers, nil
}

// info requests the state of one stream.
func (x *exam) info(ctx context.Context, name string) (*natsjs.StreamInfo, error) {
	try, cancel := context.WithTimeout(ctx, link.AnswerTimeout)
	defer cancel()
	s, err := x.js.Stream(try, name)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// askStreams requests the state of all streams at once: a stream without a leader does
// not answer, and the timeout is long.
func (x *exam) askStreams(ctx context.Context) error {
	type answer struct {
		err         error
		asked, came time.Time
	}
	answers := make([]answer, len(x.wants))
	var wg sync.WaitGroup
	for i := range x.wants {
		if x.denied[streamInfoAPI+x.wants[i].config.Name] {
			x.wants[i].silent = true
			continue
		}
		wg.Go(func() {
			a := &answers[i]
			a.asked = x.opts.Now()
			x.wants[i].info, a.err = x.info(ctx, x.wants[i].config.Name)
			a.came = x.opts.Now()
		})
	}
	wg.Wait()
	for i, a := range answers {
		w := &x.wants[i]
		switch {
		case w.info != nil:
			server := x.nc.ConnectedServerName()
			if w.info.Cluster != nil && w.info.Cluster.Leader != "" {
				server = w.info.Cluster.Leader
			}
			x.readClock(server, w.info.TimeStamp, a.asked, a.came)
		case a.err == nil, errors.Is(a.err, natsjs.ErrStreamNotFound):
		default:
			w.silent = true
			x.Problem(CheckStreams, w.config.Name, fmt.Sprintf("nobody answers for stream %s: %v", w.config.Name, a.err),
				fmt.Sprintf("start the servers that keep stream %s: more than half of them are needed (nats stream report)", w.config.Name))
		}
	}
	return context.Cause(ctx)
}

// tellStreams reports which streams exist.
func (x *exam) tellStreams(ctx context.Context) error {
	fresh := len(x.logStreams()) == 0
	bad := false
	var messages, bytes uint64
	for _, w := range x.wants {
		if w.info != nil {
			messages, bytes = messages+w.info.State.Msgs, bytes+w.info.State.Bytes
		}
		if bad = bad || w.silent; w.info != nil || w.silent {
			continue
		}
		taken, err := x.Taken(ctx, w)
		if err != nil {
			return err
		}
		if bad = bad || taken; !fresh && w.log {
			bad = true
			x.Warning(CheckStreams, w.config.Name, fmt.Sprintf("stream %s is missing, others are there", w.config.Name),
				fmt.Sprintf("if stream %s was deleted, restore it from a backup (nats stream restore) before helixd serve creates it again, empty", w.config.Name))
		}
	}
	if name := x.halfRestored(); name != "" {
		bad = true
		x.Problem(CheckStreams, name, fmt.Sprintf("a restore has begun here and not ended (stream %s)", name),
			"wait for its end; if it has broken off, remove the data folder, or all streams HELIX_* (nats stream rm), and restore again")
	}
	switch {
	case bad:
	case fresh:
		x.OK(CheckStreams, "none yet: helixd serve creates %d", len(x.wants))
	default:
		x.OK(CheckStreams, "%s, %s, %s", streams.Count(len(x.existing(nil)), "stream"), streams.Count(int(messages), "message"), size(bytes))
	}
	return nil
}

// halfRestored returns a stream of an unfinished restore; empty: there is none.
func (x *exam) halfRestored() string {
	for _, w := range x.wants {
		if w.info != nil && w.info.Config.Metadata[streams.MetadataRestoring] != "" {
			return w.config.Name
		}
	}
	return ""
}

// Taken reports whether another stream has subjects of w: then w can't be created.
func (x *exam) Taken(ctx context.Context, w want) (bool, error) {
	if x.denied[streamNamesAPI] {
		return false, nil
	}
	for _, subject := range w.config.Subjects {
		try, cancel := context.WithTimeout(ctx, link.AnswerTimeout)
		other, err := x.js.StreamNameBySubject(try, subject)
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			continue // there is none
		}
		x.Problem(CheckStreams, other, fmt.Sprintf("stream %s takes subjects of %s, so that helixd can't create %s", other, subject, w.config.Name),
			fmt.Sprintf("take the subjects under %s away from stream %s (nats stream edit %s --subjects …)", subject, other, other))
		return true, nil
	}
	return false, nil
}
