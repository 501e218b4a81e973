//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/helixd/helixd/integration/checker"
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

	*checker.Checker
	ctx context.Context // ends with the first violation

	mu      sync.Mutex
	cluster []*node // members
	ever    []*node // also those that have left
}

// try runs the program: start, load and faults, rest, check.
func try(ctx context.Context, o options, folder string) (err error) {
	t := &trial{options: o, folder: folder}
	deployment.Say("seed %d, %d nodes, %d sessions, %s of %s", o.seed, o.nodes, o.sessions, o.span, strings.Join(append(o.faults, o.story...), ", "))
	t.Checker, err = checker.New(ctx, checker.Options{
		Nodes: t.clientsOf, Seed: o.seed, Sessions: o.sessions, PowerFails: slices.Contains(o.faults, kindPower),
		Once: o.nodes == 1 && len(o.story) == 0 && !slices.Contains(o.faults, kindFreeze),
	})
	if err != nil {
		return err
	}
	defer t.Close()
	t.ctx = t.Context()
	defer t.disks.remove()
	defer t.stop()
	for _, step := range []func() error{t.build, t.prepare, t.startAll, t.Learn, t.breakThings, t.check} {
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

// breakThings runs load, readers, audits and faults, and has all of it come to
// rest.
func (t *trial) breakThings() error {
	t.Load()
	t.breakAll()
	t.Settle()
	deployment.Say("no more faults")
	if err := t.allReady(readyWithin); err != nil {
		return err
	}
	deployment.Say("all nodes are ready")
	t.confess()
	return t.Rest()
}

// check holds all that was promised against the nodes and their files.
func (t *trial) check() error {
	if err := t.Check(); err != nil {
		return err
	}
	t.confess()
	t.verify()
	return context.Cause(t.ctx)
}

// verify has helixd verify the streams; with one node, which it stops, also
// its files.
func (t *trial) verify() {
	n := t.members()[0]
	what := []string{"verify", "--nats", fmt.Sprintf("nats://%s:%s@%s", natsUser, natsPassword, n.NATS.Address)}
	if n.NATS == (deployment.Server{}) {
		if err := n.interrupt(); err != nil {
			t.Violate("", nil, "%v", err)
			return
		}
		what = []string{"verify", "--data-dir", n.data}
	}
	if out, err := exec.CommandContext(t.ctx, t.binaries.Helixd, what...).CombinedOutput(); err != nil {
		t.Violate("", nil, "helixd verify: %v: %s", err, out)
	}
}

// stop ends all processes.
func (t *trial) stop() {
	for _, n := range t.everybody() {
		n.close()
	}
	for _, l := range t.links {
		l.close()
	}
}
