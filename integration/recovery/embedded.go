package main

import (
	"fmt"
	"slices"

	"github.com/helixd/helixd/integration/deployment"
)

// embedded measures three nodes whose embedded servers store the log together. Each
// measurement has its own nodes, so that remains of one do not slow the next one.
func (b *bench) embedded() error {
	for _, e := range []struct {
		name  string
		leads bool // the node that ends, all streams
		how   ending
	}{
		{"embedded cluster: SIGKILL of a node that leads no stream", false, killed},
		{"embedded cluster: SIGTERM of a node that leads no stream", false, stopped},
		{"embedded cluster: SIGTERM of the node that leads all streams", true, stopped},
		{"embedded cluster: SIGKILL of the node that leads all streams", true, killed},
	} {
		err := b.onEmbedded(func(d *deployment.Deployment) error {
			victim, leader := d.Nodes[1], d.Nodes[2]
			if e.leads {
				leader = victim
			}
			return b.takeovers(d, e.name, victim, e.how, func() error { return b.lead(d, leader.Name) })
		})
		if err != nil {
			return err
		}
	}
	return b.onEmbedded(b.embeddedLeader)
}

// embeddedLeader measures what producers at the other nodes notice.
func (b *bench) embeddedLeader(d *deployment.Deployment) error {
	victim := d.Nodes[1]
	others := slices.DeleteFunc(slices.Clone(d.Nodes), func(n *deployment.Node) bool { return n == victim })
	err := b.gaps(d, "embedded cluster: the log's leader steps down", others, func() (func() error, error) {
		return nil, d.Streams.StepDown(b.ctx, deployment.Log)
	})
	if err != nil {
		return err
	}
	return b.gaps(d, "embedded cluster: SIGKILL of the node that leads the log, producers at the others", others, func() (func() error, error) {
		if err := b.lead(d, victim.Name); err != nil {
			return nil, err
		}
		victim.Kill()
		return func() error { return b.revive(d, victim) }, nil
	})
}

// onEmbedded runs three nodes with their own cluster.
func (b *bench) onEmbedded(do func(*deployment.Deployment) error) error {
	b.clusters++
	return b.on(fmt.Sprint("embedded-", b.clusters), "three nodes with their own cluster", func(dir string) (*deployment.Deployment, error) {
		return deployment.Embedded(b.binaries, dir, 3, b.agents())
	}, do)
}

// lead has a node's server lead all streams.
func (b *bench) lead(d *deployment.Deployment, name string) error {
	streams, err := d.Streams.Names(b.ctx)
	if err != nil {
		return err
	}
	for _, stream := range streams {
		if err := d.Streams.Lead(b.ctx, stream, name); err != nil {
			return err
		}
	}
	return d.Streams.WaitHealthy(b.ctx)
}
