//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
	"github.com/helixd/helixd/projector"
)

// checkers is how many sessions are checked at once.
const checkers = 4

// check holds all that was promised against what every node says, when all is
// idle.
func (t *trial) check() error {
	all := t.all()
	deployment.Say("checking %d sessions", len(all))
	var group sync.WaitGroup
	var mu sync.Mutex
	var total figures
	todo := make(chan *ledger)
	for range checkers {
		group.Go(func() {
			for l := range todo {
				f, err := t.checkSession(l)
				if err != nil {
					t.broken(l, err)
				}
				mu.Lock()
				total.add(f)
				mu.Unlock()
			}
		})
	}
	for _, l := range all {
		if t.ctx.Err() != nil {
			break
		}
		todo <- l
	}
	close(todo)
	group.Wait()
	if text := t.confessions(); text != "" {
		t.violate("", nil, "%s", text)
	}
	if t.ctx.Err() == nil {
		t.verify()
	}
	if t.ctx.Err() != nil {
		return nil
	}
	calls, runs := t.tools.count()
	deployment.Say("%d sessions, %d records, %d of them truncated; %d appends and %d runs acknowledged; %d claims; %d tool calls made %d times; readers got %d chunks",
		len(all), total.records, total.struck, total.acks, total.runs, total.claims, calls, runs, total.shown)
	deployment.Say("noted: %s", t.noted())
	return nil
}

// verify has helixd verify the streams; with one node, which it stops, also
// its files.
func (t *trial) verify() {
	n := t.members()[0]
	what := []string{"verify", "--nats", fmt.Sprintf("nats://%s:%s@%s", natsUser, natsPassword, n.NATS.Address)}
	if n.NATS == (deployment.Server{}) {
		if err := n.interrupt(); err != nil {
			t.violate("", nil, "%v", err)
			return
		}
		what = []string{"verify", "--data-dir", n.data}
	}
	if out, err := exec.CommandContext(t.ctx, t.binaries.Helixd, what...).CombinedOutput(); err != nil {
		t.violate("", nil, "helixd verify: %v: %s", err, out)
	}
}

// figures are what was checked.
type figures struct{ records, struck, acks, runs, claims, shown int }

func (f *figures) add(g figures) {
	f.records += g.records
	f.struck += g.struck
	f.acks += g.acks
	f.runs += g.runs
	f.claims += g.claims
	f.shown += g.shown
}

func (t *trial) broken(l *ledger, err error) {
	var sequences []uint64
	if p, ok := errors.AsType[*evidence.Problem](err); ok {
		sequences = p.Sequences
	}
	t.violate(l.session, sequences, "%v", err)
}

// checkSession checks one session idle on all nodes.
func (t *trial) checkSession(l *ledger) (f figures, err error) {
	var raw, lines []byte
	for i, n := range t.members() {
		got, err := n.say("/sessions/" + l.session + "/records?dead=1")
		if deployment.Code(err) == api.CodeNotFound && !l.isCreated() {
			return f, nil
		}
		if err != nil {
			return f, fmt.Errorf("records of %s: %w", n.Name, err)
		}
		if said := evidence.Timeless(got); i == 0 {
			raw, lines = got, said
		} else if !bytes.Equal(lines, said) {
			return f, differs(lines, said, n.Name)
		}
	}
	records, err := evidence.Parse(raw)
	if err != nil {
		return f, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.promised().Hold(records); err != nil {
		return f, err
	}
	tree := projector.Fold(records...)
	for _, n := range t.members() {
		state, err := n.say("/sessions/" + l.session + "/state")
		if err != nil {
			return f, fmt.Errorf("state of %s: %w", n.Name, err)
		}
		if err := evidence.SameState(state, tree); err != nil {
			return f, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	if err := t.rightEnd(l, tree); err != nil {
		return f, err
	}
	if err := t.tools.again(records); err != nil {
		return f, err
	}
	f = figures{records: len(records), acks: len(l.acks), runs: len(l.runs)}
	dead, err := evidence.DeadOf(records)
	if err != nil {
		return f, err
	}
	for _, r := range records {
		if dead.Covers(r) {
			f.struck++
		}
		if r.Type == (*fact.RunClaimed)(nil).Type() {
			f.claims++
		}
	}
	for _, r := range l.readers {
		f.shown += len(r.Seen)
		if err := evidence.Complete(r.Seen, records, dead); err != nil {
			return f, err
		}
	}
	return f, nil
}

// say asks a node idle. Only one that is busy with something else may need
// more than one try.
func (n *node) say(path string) (raw []byte, err error) {
	for range 5 {
		if raw, err = n.t.get(n.API, path); !n.t.unsure(err) || !n.t.sleep(time.Second) {
			break
		}
	}
	return raw, err
}

// differs names the first record of which two nodes say something else.
func differs(a, b []byte, who string) error {
	as, bs := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(as), len(bs)) {
		if !bytes.Equal(as[i], bs[i]) {
			return fmt.Errorf("node1 has %.300s where %s has %.300s", as[i], who, bs[i])
		}
	}
	return fmt.Errorf("node1 has %d records, %s has %d", len(as)-1, who, len(bs)-1)
}
