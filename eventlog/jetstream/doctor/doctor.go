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

// Health is the result of a check.
type Health string

// Problem: helixd does not start with it, or can't keep its promises. Warning: it may
// become a problem.
const (
	Healthy Health = "ok"
	Warning Health = "warning"
	Problem Health = "problem"
)

// Check is the result for one checked thing.
type Check struct {
	// ID names the kind of check. It is stable.
	ID     string `json:"id"`
	Status Health `json:"status"`
	// Target is the stream, server or subject; empty: all of them.
	Target string `json:"target,omitempty"`
	Found  string `json:"found"`
	// Advice is what to change; empty if all is well.
	Advice string `json:"advice,omitempty"`
}

// Report receives the checks of an examination.
type Report func(Check)

// OK reports that all is well.
func (r Report) OK(id, format string, args ...any) {
	r(Check{ID: id, Status: Healthy, Found: fmt.Sprintf(format, args...)})
}

// Warning reports something that may become a problem.
func (r Report) Warning(id, target, found, advice string) {
	r(Check{ID: id, Status: Warning, Target: target, Found: found, Advice: advice})
}

// Problem reports something with which helixd does not start, or can't keep its promises.
func (r Report) Problem(id, target, found, advice string) {
	r(Check{ID: id, Status: Problem, Target: target, Found: found, Advice: advice})
}

// The ids of Examine's checks.
const (
	CheckConnection  = "connection"
	CheckSecurity    = "security" // TLS and credentials
	CheckPermissions = "permissions"
	CheckJetStream   = "jetstream" // whether the account has it
	CheckVersions    = "versions"
	CheckStreams     = "streams" // whether they exist
	CheckFormat      = "format"
	CheckPartitions  = "partitions"
	CheckSettings    = "settings" // settings of the streams
	CheckReplicas    = "replicas" // whether all of them are current
	CheckDurability  = "durability"
	CheckLimits      = "limits"  // limits of the server, the account and the streams
	CheckStorage     = "storage" // bytes for a million tokens
	CheckClock       = "clock"
)

// Neighbour is a stream of helixd that is not the log's.
type Neighbour struct {
	Name     string
	Subjects []string
	// API is the part of JetStream's API that is used on it, besides STREAM.INFO and
	// STREAM.CREATE: the subject before the stream's name, such as STREAM.MSG.GET. With
	// ".>", more follows the name.
	API []string
}

// Options describe the expected log. Zero values mean: as the streams are.
type Options struct {
	Partitions int
	// Grows: a log with fewer Partitions is opened with Options.Grow.
	Grows      bool
	Replicas   int
	Durability eventlog.Durability // see Options.Durability
	// Inside: the server is in this process, so that TLS is not checked.
	Inside bool
	// Neighbours returns the other streams for that many partitions; nil: none.
	Neighbours func(partitions int) []Neighbour
	// Subjects are further subjects that helixd both publishes to and subscribes to.
	Subjects []string
	// Now is this machine's clock; nil: time.Now.
	Now func() time.Time
}

// Examine checks a deployment as a log on it would use it, and reports to found: one
// check for everything that is well under an id, and one for each thing that is not. It
// stores nothing, and creates and changes no stream: the server refuses everything that
// it tries to publish, and states first whether this client may publish it. The
// connection must not be used by others meanwhile. It returns an error if it could not
// check.
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

// exam is an Examine in progress.
type exam struct {
	Report
	nc   *nats.Conn
	js   natsjs.JetStream
	opts Options
	// over: nothing more can be checked.
	over   bool
	denied map[string]bool // subjects that may not be published to
	wants  []want
	times  []clockReading
	// strained are the targets that were reported to be at a limit.
	strained []string
}

// want is a stream as it should be and as it is.
type want struct {
	config natsjs.StreamConfig // for a neighbour only the name and the subjects
	log    bool                // a stream of the log, not a neighbour
	api    []string            // see Neighbour.API
	info   *natsjs.StreamInfo  // nil: missing
	silent bool                // it may exist, but no server answers for it
}

// existing returns the state of the streams that exist.
func (x *exam) existing(only func(want) bool) (infos []*natsjs.StreamInfo) {
	for _, w := range x.wants {
		if w.info != nil && (only == nil || only(w)) {
			infos = append(infos, w.info)
		}
	}
	return infos
}

// logStreams returns the streams that determine durability.
func (x *exam) logStreams() []*natsjs.StreamInfo {
	return x.existing(func(w want) bool { return w.log })
}

// shortened joins the first few names.
func shortened(names []string) string {
	const most = 3
	if len(names) <= most {
		return listing(names)
	}
	return fmt.Sprintf("%s and %d more", listing(names[:most]), len(names)-most)
}

func listing(names []string) string { return strings.Join(names, ", ") }
