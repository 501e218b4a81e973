//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// trial is one run of the program.
type trial struct {
	options
	folder   string
	binaries deployment.Binaries
	earlier  string   // the helixd with which the nodes begin; empty: today's
	links    []*proxy // between nodes
	disks    disks
	tools    *tools
	calm     map[string]string // by agent, the outcome of a session that was left alone

	ctx  context.Context // ends with the first violation
	fail context.CancelCauseFunc
	// settled ends when no more is begun: what is under way comes to its end.
	settled context.Context
	settle  context.CancelFunc
	// power counts power losses: what was seen of an unsynced log may be gone.
	power  atomic.Int64
	deaths atomic.Int64 // of nodes

	mu      sync.Mutex
	cluster []*node // members
	ever    []*node // also those that have left
	ledgers map[string]*ledger
	notes   map[string]int // what is worth telling, how often
}

// try runs the program: start, load and faults, rest, check.
func try(ctx context.Context, o options, folder string) (err error) {
	t := &trial{options: o, folder: folder, ledgers: map[string]*ledger{}, notes: map[string]int{}}
	t.ctx, t.fail = context.WithCancelCause(ctx)
	defer t.fail(nil)
	t.settled, t.settle = context.WithCancel(t.ctx)
	defer t.settle()
	deployment.Say("seed %d, %d nodes, %d sessions, %s of %s", o.seed, o.nodes, o.sessions, o.span, strings.Join(append(o.faults, o.story...), ", "))
	if t.tools, err = startTools(t); err != nil {
		return err
	}
	defer t.tools.Stop()
	defer t.disks.remove()
	defer t.stop()
	for _, step := range []func() error{t.build, t.prepare, t.startAll, t.learn, t.breakThings, t.check} {
		err := errors.Join(step(), context.Cause(t.ctx))
		if errors.Is(err, errNothing) {
			deployment.Say("%v", err)
			return nil
		}
		if err != nil {
			return first(context.Cause(t.ctx), err)
		}
	}
	deployment.Say("all is well")
	return nil
}

// first returns the first that is an error: what has ended the trial, else
// what came of it.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

// build builds the command.
func (t *trial) build() (err error) {
	if t.binaries, err = deployment.Build(t.ctx, t.folder, t.Helixd, false); err != nil || t.from == "" {
		return err
	}
	if _, ferr := os.Stat(t.from); ferr == nil {
		t.earlier, err = filepath.Abs(t.from)
	} else {
		t.earlier, err = deployment.Released(t.ctx, t.from, t.from)
	}
	if err != nil {
		return err
	}
	version, err := exec.CommandContext(t.ctx, t.earlier, "version").Output()
	deployment.Say("the nodes begin with %s", bytes.TrimSpace(version))
	return err
}

// startAll starts the nodes, and waits until all of them are ready.
func (t *trial) startAll() error {
	for _, n := range t.members() {
		if t.earlier != "" {
			n.Use(t.earlier)
		}
		if err := n.start(); err != nil {
			return err
		}
	}
	return t.allReady(readyWithin)
}

// learn leaves a session of each agent alone, and remembers what comes of it.
func (t *trial) learn() error {
	t.calm = map[string]string{}
	u := t.newUser(0)
	for _, agent := range []string{agentWalker, agentBoss} {
		session := "calm-" + agent
		u.play(session, agent)
		got, err := t.outcome(session)
		if err != nil {
			return first(context.Cause(t.ctx), err)
		}
		t.calm[agent] = strings.ReplaceAll(got, session, "SESSION")
	}
	return nil
}

// breakThings runs load, readers, audits and faults, and has all of it come to
// rest.
func (t *trial) breakThings() error {
	var load, audits sync.WaitGroup
	for i := range t.sessions / 2 {
		load.Go(func() { t.produce(i) })
		load.Go(func() { t.newUser(i + 1).use() })
	}
	stop := make(chan struct{})
	audits.Go(func() { t.audit(stop) })
	t.breakAll()
	t.settle()
	deployment.Say("no more faults")
	if err := t.allReady(readyWithin); err != nil {
		return err
	}
	deployment.Say("all nodes are ready")
	if text := t.confessions(); text != "" {
		t.violate("", nil, "%s", text)
	}
	if err := t.await("sessions come to their end", &load); err != nil {
		return err
	}
	close(stop)
	audits.Wait()
	return nil
}

// await waits for what has to end by itself once nothing is broken any more.
func (t *trial) await(what string, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-t.ctx.Done():
		<-done
		return context.Cause(t.ctx)
	case <-time.After(restWithin):
		t.violate("", nil, "%s after the last fault: they have not. Waiting: %s", what, t.waiting())
		<-done
		return context.Cause(t.ctx)
	}
}

// restWithin is how long what was broken may take to come to its end by
// itself.
const restWithin = 4 * time.Minute

// stop ends all processes.
func (t *trial) stop() {
	for _, n := range t.everybody() {
		n.close()
	}
	for _, l := range t.links {
		l.close()
	}
}

func (o options) random(purpose string, i int) *rand.Rand {
	return deployment.Random(o.seed, purpose, i)
}

// note counts what is no violation but worth telling. The first of its kind is
// printed.
func (t *trial) note(what, format string, args ...any) {
	t.mu.Lock()
	t.notes[what]++
	n := t.notes[what]
	t.mu.Unlock()
	if n == 1 {
		deployment.Say("note: %s: %s", what, fmt.Sprintf(format, args...))
	}
}

func (t *trial) noted() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(t.notes)) {
		all = append(all, fmt.Sprintf("%d× %s", t.notes[what], what))
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, "; ")
}

// violation is a promise that was not held.
type violation struct {
	after     time.Duration
	session   string
	sequences []uint64
	what      string
}

func (v *violation) Error() string {
	text := fmt.Sprintf("after %.2fs", v.after.Seconds())
	if v.session != "" {
		text += ", session " + v.session
	}
	if len(v.sequences) > 0 {
		text += fmt.Sprintf(", sequences %v", v.sequences)
	}
	return text + ": " + v.what
}

// violate ends the trial.
func (t *trial) violate(session string, sequences []uint64, format string, args ...any) {
	if t.ctx.Err() != nil {
		return
	}
	v := &violation{time.Since(deployment.Began), session, sequences, fmt.Sprintf(format, args...)}
	deployment.Say("VIOLATION %v", v)
	t.fail(v)
}

// sleep waits, and reports whether the trial continues.
func (t *trial) sleep(d time.Duration) bool { return deployment.Sleep(t.ctx, d) == nil }
