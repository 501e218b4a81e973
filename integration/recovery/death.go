package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/deployment"
)

// ending is a way in which a node ends.
type ending struct {
	name string
	do   func(*deployment.Node) error
}

var (
	killed  = ending{"SIGKILL", func(n *deployment.Node) error { n.Kill(); return nil }}
	stopped = ending{"SIGTERM", func(n *deployment.Node) error { return n.Stop(deployment.Within) }}
)

// settled is how long runs stream before their node ends.
const settled = 2 * time.Second

// takeover is what became of the runs of a node that has ended.
type takeover struct {
	claims, chunks, words deployment.Samples // since the ending: another node's claim, first chunk, first words at a client
	silences              deployment.Samples // between a client's last chunk of the old node and its first of the new one
}

// takeovers ends a node as often as wanted, and measures how its runs continue at
// the others. prepare, if any, is called before each time.
func (b *bench) takeovers(d *deployment.Deployment, what string, victim *deployment.Node, e ending, prepare func() error) error {
	var all takeover
	for i := range b.times {
		deployment.Say("%s, %d of %d", what, i+1, b.times)
		if prepare != nil {
			if err := prepare(); err != nil {
				return err
			}
		}
		err := b.takeover(d, victim, e, &all)
		if errors.Is(err, errMoved) { // a node that stands still for seconds is dead to the others
			deployment.Say("%v: once more", err)
			err = b.takeover(d, victim, e, &all)
		}
		if err != nil {
			return err
		}
	}
	b.report.add(what+": claimed by another node", d.Durability, all.claims...)
	if e.name == killed.name {
		b.report.aimed(what+": first new chunk at a client", d.Durability, all.chunks...)
	} else {
		b.report.add(what+": first new chunk at a client", d.Durability, all.chunks...)
	}
	b.report.add(what+": first new words of the model", d.Durability, all.words...)
	b.report.add(what+": silence that a client sees", d.Durability, all.silences...)
	return nil
}

// errMoved: there is too little to measure, for the node that is to end has lost
// runs before.
var errMoved = errors.New("runs are not where they were begun")

func (b *bench) takeover(d *deployment.Deployment, victim *deployment.Node, e ending, all *takeover) error {
	other := d.Nodes[0]
	if other == victim {
		other = d.Nodes[1]
	}
	begun, err := b.walks(3*b.runs, victim, other) // the other two nodes get their share
	if err != nil {
		return err
	}
	if err := deployment.Sleep(b.ctx, settled); err != nil {
		return err
	}
	walks, holder, err := b.of(begun, other)
	if err != nil {
		return err
	}
	if len(walks) < b.runs/2 {
		return errors.Join(fmt.Errorf("%w: the node drives %d of %d", errMoved, len(walks), len(begun)), b.stop(begun, other))
	}
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- e.do(victim) }()
	claims := make([]eventlog.Record, len(walks))
	err = deployment.Each(len(walks), 4, func(i int) (err error) {
		w := walks[i]
		if claims[i], err = b.claimed(w.walk, other, w.claim, holder); err != nil {
			return err
		}
		return b.wait(w.session+" says nothing any more", func() (bool, error) { return w.saidAfter(claims[i].Sequence), w.failure() })
	})
	if err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	for i, w := range walks {
		if claims[i].Time.Before(began) {
			continue // the node gave it to one that had fewer, after it was asked for its runs
		}
		before, chunk, words := w.around(claims[i].Sequence)
		all.claims = append(all.claims, claims[i].Time.Sub(began))
		all.chunks = append(all.chunks, chunk.time.Sub(began))
		all.words = append(all.words, words.time.Sub(began))
		all.silences = append(all.silences, chunk.time.Sub(before.time))
	}
	if err := b.stop(begun, other); err != nil {
		return err
	}
	return b.revive(d, victim)
}

// held is a run, and the sequence of the claim by which a node holds it.
type held struct {
	*walk
	claim uint64
}

// of returns the runs of the node that drives most of them: the one where they were begun.
func (b *bench) of(begun []*walk, at *deployment.Node) (walks []held, holder string, err error) {
	by := map[string][]held{}
	for _, w := range begun {
		var (
			node  string
			claim uint64
		)
		err := b.claims(b.ctx, w, at, 0, func(r eventlog.Record, last string) bool {
			node, claim = last, r.Sequence
			return true
		})
		if err != nil {
			return nil, "", err
		}
		if by[node] = append(by[node], held{w, claim}); len(by[node]) > len(by[holder]) {
			holder = node
		}
	}
	return by[holder], holder, nil
}

// lookEvery is how seldom a claim is looked for: the record says when it was.
const lookEvery = 400 * time.Millisecond

// claimed waits until another node than the first has claimed a run.
func (b *bench) claimed(w *walk, at *deployment.Node, from uint64, first string) (claim eventlog.Record, err error) {
	ctx, cancel := context.WithTimeoutCause(b.ctx, deployment.Within, fmt.Errorf("nobody takes %s over within %s", w.session, deployment.Within))
	defer cancel()
	err = deployment.Retry(ctx, lookEvery, func() (err error) {
		if claim, err = b.claim(ctx, w, at, from, first); err == nil && claim.Sequence == 0 {
			err = errors.New("no other node has claimed it")
		}
		return err
	})
	return claim, err
}

// revive starts a node again, and waits until all is as it was.
func (b *bench) revive(d *deployment.Deployment, n *deployment.Node) error {
	if err := n.Start(); err != nil {
		return err
	}
	if _, err := n.Ready(b.ctx); err != nil {
		return err
	}
	return d.Streams.WaitHealthy(b.ctx)
}
