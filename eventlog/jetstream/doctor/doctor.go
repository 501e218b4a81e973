package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

// Health is how a check came out.
type Health string

// A problem is what helixd does not start with, or can't keep its promises
// with. A warning is worth a look: it may become one.
const (
	Healthy Health = "ok"
	Warning Health = "warning"
	Problem Health = "problem"
)

// Check is one thing that was looked at.
type Check struct {
	// ID is stable: what was looked at.
	ID     string `json:"id"`
	Status Health `json:"status"`
	// Target is which one: a stream, a server, a subject. Empty: all of them.
	Target string `json:"target,omitempty"`
	Found  string `json:"found"`
	// Advice is what to change; empty where all is well.
	Advice string `json:"advice,omitempty"`
}

// Report takes the checks that an examination makes.
type Report func(Check)

// OK reports that all is well.
func (r Report) OK(id, format string, args ...any) {
	r(Check{ID: id, Status: Healthy, Found: fmt.Sprintf(format, args...)})
}

// Warning reports what is worth a look.
func (r Report) Warning(id, target, found, advice string) {
	r(Check{ID: id, Status: Warning, Target: target, Found: found, Advice: advice})
}

// Problem reports what helixd does not start with, or can't keep its promises with.
func (r Report) Problem(id, target, found, advice string) {
	r(Check{ID: id, Status: Problem, Target: target, Found: found, Advice: advice})
}

// The ids of Examine's checks.
const (
	CheckConnection  = "connection"
	CheckSecurity    = "security" // TLS and credentials
	CheckPermissions = "permissions"
	CheckJetStream   = "jetstream" // is there any for this account
	CheckVersions    = "versions"
	CheckStreams     = "streams" // are they there
	CheckPartitions  = "partitions"
	CheckSettings    = "settings" // of the streams
	CheckReplicas    = "replicas" // are all of them current
	CheckDurability  = "durability"
	CheckLimits      = "limits"  // of the server, the account and the streams
	CheckStorage     = "storage" // what a million tokens take
	CheckClock       = "clock"
)

// Neighbour is a stream that helixd keeps beside the log's own.
type Neighbour struct {
	Name     string
	Subjects []string
	// API is what of JetStream's API is used on it, besides STREAM.INFO and
	// STREAM.CREATE: what stands before the stream's name, as STREAM.MSG.GET.
	// With ".>" more follows the name.
	API []string
}

// Options say what the log is to be. Zero values mean: as the streams
// are.
type Options struct {
	Partitions int
	// Grows: a log with fewer Partitions is opened with Options.Grow.
	Grows      bool
	Replicas   int
	Durability eventlog.Durability // see Options.Durability
	// Inside: the server is in this process. It is not asked for TLS.
	Inside bool
	// Neighbours are the other streams of so many partitions; nil: none.
	Neighbours func(partitions int) []Neighbour
	// Subjects are others that are both published to and subscribed to.
	Subjects []string
	// Now is this machine's clock; nil: time.Now.
	Now func() time.Time
}

// Examine looks at a deployment as a log on it would use it and tells found
// what it sees: one check for all that is well with an id, one for each that
// is not. It stores nothing, and makes and changes no stream: what it tries to
// publish, the server refuses whatever it is, and says before whether this
// client may. The connection should be nobody else's. An error is that it
// could not look.
func Examine(ctx context.Context, nc *nats.Conn, o *Options, found Report) error {
	x := &exam{nc: nc, Report: found, denied: map[string]bool{}}
	if o != nil {
		x.opts = *o
	}
	if x.opts.Now == nil {
		x.opts.Now = time.Now
	}
	js, err := natsjs.New(nc)
	if err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	x.js = js
	if err := x.connection(); err != nil {
		return err
	}
	x.security()
	for _, look := range []func(context.Context) error{
		x.version, x.transport, x.inbox, x.streams, x.permissions, x.servers, x.settings, x.replicas, x.durability, x.limits, x.storage, x.clock,
	} {
		if err := look(ctx); err != nil {
			return err
		}
		if x.over {
			break
		}
	}
	return nil
}

// exam is an Examine under way.
type exam struct {
	Report
	nc   *nats.Conn
	js   natsjs.JetStream
	opts Options
	// over: nothing more can be seen.
	over   bool
	denied map[string]bool // subjects that may not be published to
	wants  []want
	times  []clockReading
	// strained is what was told to be at a limit.
	strained []string
}

// want is a stream as it should be, and as it is.
type want struct {
	config natsjs.StreamConfig // of a neighbour: the name and the subjects
	log    bool                // one of the log's own, not a neighbour
	api    []string            // see Neighbour.API
	info   *natsjs.StreamInfo  // nil: missing
	silent bool                // may exist: nobody answers for it
}

// existing are the streams that there are.
func (x *exam) existing(only func(want) bool) (infos []*natsjs.StreamInfo) {
	for _, w := range x.wants {
		if w.info != nil && (only == nil || only(w)) {
			infos = append(infos, w.info)
		}
	}
	return infos
}

// logStreams are those that decide on durability.
func (x *exam) logStreams() []*natsjs.StreamInfo {
	return x.existing(func(w want) bool { return w.log })
}

// shortened lists the first few of many.
func shortened(names []string) string {
	const most = 3
	if len(names) <= most {
		return listing(names)
	}
	return fmt.Sprintf("%s and %d more", listing(names[:most]), len(names)-most)
}

func listing(names []string) string { return strings.Join(names, ", ") }
