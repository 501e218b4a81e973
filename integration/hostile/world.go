//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// Who there is. Both tenants may do the same, each with its own sessions.
const (
	victimToken    = "victim-token-5e1c07c2b1a94f0e"
	victimPrefix   = "good-"
	victimUser     = "vera"
	attackerToken  = "attacker-token-8b7d1f7f2c3a4d6e"
	attackerPrefix = "evil-"
	ownSession     = attackerPrefix + "own"
	// absentSession has as many letters as a secret one, and does not exist.
	absentSession = victimPrefix + "secret-8"
)

// marker is in everything that the victim's secret sessions say.
const marker = "xylophonesecret"

// secrets is how many sessions the victim has that must stay as they are.
const secrets = 5

// world is the daemon, its tenants, and what was seen.
type world struct {
	options
	node   *deployment.Node
	http   *http.Client
	victim *client.Client
	// forbidden is how many of the attacker's requests were refused with 403.
	forbidden atomic.Int64

	mu       sync.Mutex
	rows     []row
	notes    []string
	problems []error
	before   map[string]uint64 // the secret sessions' records
}

// row is what the victim saw during an attack.
type row struct {
	attack string
	seen   seen
	peak   float64 // of the daemon's memory, MiB
	notes  []string
	err    error
}

func (w *world) secret(i int) string { return fmt.Sprintf("%ssecret-%d", victimPrefix, i) }

// note is a finding that is no failure.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

func (w *world) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	notes := w.notes
	w.notes = nil
	return notes
}

// run runs the daemon, the victim's load, and the attacks one by one.
func run(ctx context.Context, o options, dir string) error {
	binaries, err := deployment.Build(ctx, dir, o.Helixd, false)
	if err != nil {
		return err
	}
	d, err := deployment.Alone(binaries, dir, configuration)
	if err != nil {
		return err
	}
	defer d.Close()
	d.Nodes[0].Token = victimToken
	if err := d.Start(ctx); err != nil {
		return err
	}
	w := &world{options: o, node: d.Nodes[0], http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	defer w.http.CloseIdleConnections()
	w.victim = client.New(w.node.URL, &client.Options{Token: client.StaticToken(victimToken)})
	if err := w.prepare(ctx); err != nil {
		return err
	}

	load, stop := context.WithCancel(ctx)
	defer stop()
	l := w.stream(load)
	calm := w.during(ctx, l, "none", o.calm, func(ctx context.Context) error { return deployment.Sleep(ctx, o.calm) })
	w.rows = append(w.rows, calm)
	for _, a := range attacks {
		if len(o.only) > 0 && !slices.Contains(o.only, a.name) {
			continue
		}
		deployment.Say("%s: %s", a.name, a.about)
		w.rows = append(w.rows, w.during(ctx, l, a.name, o.each, func(ctx context.Context) error { return a.run(w, ctx) }))
		if err := w.unchanged(ctx); err != nil {
			w.problems = append(w.problems, fmt.Errorf("after %s: %w", a.name, err))
		}
	}
	stop()
	w.problems = append(w.problems, l.wait()...)
	w.problems = append(w.problems, w.afterwards(ctx)...)
	w.report(os.Stdout, d.Durability)
	return w.verdict()
}

// prepare makes the victim write its secret sessions, and the attacker one session.
func (w *world) prepare(ctx context.Context) error {
	w.before = map[string]uint64{}
	for i := range secrets {
		id := w.secret(i)
		if _, err := w.victim.AppendChunks(ctx, id, deployment.TextChunk(id, fmt.Sprintf("%s %s%d says so", marker, victimPrefix, i)), client.AppendOptions{}); err != nil {
			return err
		}
		sum, err := w.sum(ctx, id)
		if err != nil {
			return err
		}
		w.before[id] = sum
	}
	a, err := w.ask(ctx, request{method: http.MethodPost, path: "/sessions/" + ownSession + "/chunks", body: `[{"type":"text_delta","agentId":"` + ownSession + `","agentType":"x","step":0,"timestamp":1,"delta":"mine"}]`})
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("the attacker's own session: %d: %s", a.status, a.body)
	}
	return err
}

var seed = maphash.MakeSeed()

// sum stands for all records of a session of the victim's.
func (w *world) sum(ctx context.Context, id string) (uint64, error) {
	var h maphash.Hash
	h.SetSeed(seed)
	for r, err := range w.victim.Records(ctx, id, client.RecordRange{}) {
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(&h, "%d %s %s %s\n", r.Sequence, r.Kind, r.Type, r.Payload)
	}
	return h.Sum64(), nil
}

// unchanged requires that the secret sessions are what they were.
func (w *world) unchanged(ctx context.Context) error {
	for id, want := range w.before {
		got, err := w.sum(ctx, id)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if got != want {
			return fmt.Errorf("%s is not what it was", id)
		}
	}
	return nil
}

// during is what the victim sees while something continues, for at least so long.
func (w *world) during(ctx context.Context, l *load, name string, least time.Duration, do func(context.Context) error) row {
	l.reset()
	r := row{attack: name}
	watched, stop := context.WithCancel(ctx)
	peak := make(chan float64)
	go func() { peak <- w.watch(watched) }()
	began := time.Now()
	r.err = do(ctx)
	if rest := least - time.Since(began); rest > 0 {
		_ = deployment.Sleep(ctx, rest) // its end is seen by who is called next
	}
	r.seen, r.notes = l.seen(), w.taken()
	stop()
	r.peak = <-peak
	return r
}

// watch is the most memory that the daemon has until ctx ends.
func (w *world) watch(ctx context.Context) (peak float64) {
	for deployment.Sleep(ctx, 50*time.Millisecond) == nil {
		peak = max(peak, deployment.Resident(w.node.PID()))
	}
	return peak
}

// afterwards stops the daemon as its operator would, starts it and looks whether
// the victim's sessions are there.
func (w *world) afterwards(ctx context.Context) (problems []error) {
	if err := w.node.Stop(stopWithin); err != nil {
		problems = append(problems, err)
	}
	began := time.Now()
	if err := w.node.Start(); err != nil {
		return append(problems, err)
	}
	if _, err := w.node.Ready(ctx); err != nil {
		return append(problems, err)
	}
	w.note("ready %s after a restart", time.Since(began).Round(time.Millisecond))
	return append(problems, w.unchanged(ctx), w.logged())
}

// verdict is what does not hold.
func (w *world) verdict() error {
	var all []error
	for _, r := range w.rows {
		if r.err != nil {
			all = append(all, fmt.Errorf("%s: %w", r.attack, r.err))
		}
		if err := r.within(w.rows[0].seen, w.Short); err != nil {
			all = append(all, fmt.Errorf("during %s: %w", r.attack, err))
		}
	}
	return errors.Join(append(all, w.problems...)...)
}
