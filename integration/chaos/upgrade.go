//go:build unix

package main

import (
	"context"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// roll upgrades the nodes one after the other, as an operator does: the next one is stopped
// when the last one is ready. When all are, one goes back to the earlier version, and forward
// again.
func (t *trial) roll() {
	type step struct {
		node int
		back bool
	}
	var steps []step
	for i := range t.members() {
		steps = append(steps, step{node: i})
	}
	steps = append(steps, step{back: true}, step{})
	r := deployment.Random(t.seed, "upgrade", 0)
	pause := t.span / time.Duration(len(steps))
	for _, s := range steps {
		n := t.members()[s.node]
		program, version := t.binaries.Helixd, "this version"
		if s.back {
			program, version = t.earlier, "the earlier version"
		}
		if !t.Sleep(pause/2 + time.Duration(r.Int64N(int64(pause)))) {
			return
		}
		if err := t.replace(n, program, version, r.IntN(3) == 0); err != nil {
			t.Violate("", nil, "upgrade of %s: %v", n.Name, err)
		}
	}
	t.Sleep(pause / 2)
}

// replace runs another program in a node and waits until it is ready.
func (t *trial) replace(n *node, program, version string, hard bool) error {
	n.at.Lock()
	defer n.at.Unlock()
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	began := time.Now()
	if hard {
		deployment.Say("%s: SIGKILL, then %s", n.Name, version)
		n.kill()
	} else {
		deployment.Say("%s: SIGINT, then %s", n.Name, version)
		if err := n.interrupt(); err != nil {
			return err
		}
	}
	n.Use(program)
	if err := n.start(); err != nil {
		return err
	}
	if !n.readyIn(readyWithin) && t.ctx.Err() == nil {
		t.Violate("", nil, "%s is not ready within %s after the upgrade: %s", n.Name, readyWithin, n.LastWords())
	}
	deployment.Say("%s: ready after %.1f s", n.Name, time.Since(began).Seconds())
	return context.Cause(t.ctx)
}
