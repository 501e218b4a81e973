package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

const (
	// chunksEach is how many chunks a session has.
	chunksEach = 3
	// reads is how many sessions are read after a restart.
	reads = 100
)

// restart measures one node that is killed and started again with many sessions.
func (b *bench) restart() error {
	dir, err := b.dir("restart")
	if err != nil {
		return err
	}
	d, err := deployment.Alone(b.binaries, dir, b.agents())
	if err != nil {
		return err
	}
	defer d.Close()
	n := d.Nodes[0]
	n.Env = []string{"HELIX_DURABILITY=interval=1s"} // while the sessions are made: that is not what is measured
	if err := d.Start(b.ctx); err != nil {
		return err
	}
	deployment.Say("making %d sessions", b.sessions)
	began := time.Now()
	if err := deployment.Each(b.sessions, 128, func(i int) error { return b.fill(n, i) }); err != nil {
		return err
	}
	deployment.Say("they took %s; %.0f MiB", time.Since(began).Round(time.Second), deployment.Resident(n.PID()))
	if err := n.Stop(deployment.Within); err != nil {
		return err
	}
	n.Env = nil
	if err := d.Start(b.ctx); err != nil {
		return err
	}
	var ready, first, chunk, others deployment.Samples
	for i := range b.times {
		deployment.Say("restart, %d of %d", i+1, b.times)
		walks, err := b.walks(1, n, n)
		if err != nil {
			return err
		}
		w := walks[0]
		if err := deployment.Sleep(b.ctx, settled); err != nil {
			return err
		}
		_, holder, err := b.of(walks, n)
		if err != nil {
			return err
		}
		from := w.last().sequence
		n.Kill()
		began := time.Now()
		if err := n.Start(); err != nil {
			return err
		}
		if _, err := n.Ready(b.ctx); err != nil {
			return err
		}
		ready = append(ready, time.Since(began))
		for j := range reads {
			one := time.Now()
			err := b.insist(func() error {
				_, err := n.API.State(b.ctx, filled(rand.IntN(b.sessions)))
				return err
			})
			if err != nil {
				return err
			}
			if j == 0 {
				first = append(first, time.Since(began))
			} else {
				others = append(others, time.Since(one))
			}
		}
		claim, err := b.claimed(w, n, from, holder)
		if err != nil {
			return err
		}
		if err := b.wait(w.session+" does not continue", func() (bool, error) { return w.saidAfter(claim.Sequence), w.failure() }); err != nil {
			return err
		}
		_, behind, _ := w.around(claim.Sequence)
		chunk = append(chunk, behind.time.Sub(began))
		if err := b.stop(walks, n); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("one node with %d sessions, restart after SIGKILL: ", b.sessions)
	b.report.add(what+"start to ready", d.Durability, ready...)
	b.report.add(what+"start to the first read's answer", d.Durability, first...)
	b.report.add(what+"start to the first new chunk of a run that was live, at its client", d.Durability, chunk...)
	b.report.add(what+"further reads, one after the other", d.Durability, others...)
	deployment.Say("%.0f MiB after the last restart", deployment.Resident(n.PID()))
	return nil
}

func filled(i int) string { return fmt.Sprint("filled-", i) }

// fill makes a session, a chunk at a time: several together are an atomic batch,
// which costs one server more than they do.
func (b *bench) fill(n *deployment.Node, i int) error {
	for k := range chunksEach {
		err := b.insist(func() error {
			chunk := deployment.TextChunk(filled(i), fmt.Sprint("words ", k, " of what somebody has said here "))
			_, err := n.API.AppendChunks(b.ctx, filled(i), chunk, client.AppendOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
