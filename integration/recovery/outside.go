package main

import (
	"fmt"

	"github.com/helixd/helixd/integration/deployment"
)

// outside measures the end of nodes on three NATS servers that are not theirs.
func (b *bench) outside() error {
	return b.onOutside("outside", func(d *deployment.Deployment) error {
		for _, e := range []ending{killed, stopped} {
			if err := b.takeovers(d, "outside NATS: a node's "+e.name, d.Nodes[1], e, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// leader measures the end of the server that leads the log.
func (b *bench) leader() error {
	return b.onOutside("leader", func(d *deployment.Deployment) error {
		for _, e := range []struct {
			name string
			do   func(*deployment.Process) error
		}{
			{"SIGKILL", func(p *deployment.Process) error { p.Kill(); return nil }},
			{"SIGTERM", func(p *deployment.Process) error { return p.Stop(deployment.Within) }},
		} {
			err := b.gaps(d, "outside NATS: "+e.name+" of the server that leads the log", d.Nodes, func() (func() error, error) {
				p, err := b.leading(d)
				if err != nil {
					return nil, err
				}
				return p.Start, e.do(p)
			})
			if err != nil {
				return err
			}
		}
		return b.gaps(d, "outside NATS: the log's leader steps down", d.Nodes, func() (func() error, error) {
			return nil, d.Streams.StepDown(b.ctx, deployment.Log)
		})
	})
}

// onOutside runs three nodes on three NATS servers.
func (b *bench) onOutside(name string, do func(*deployment.Deployment) error) error {
	return b.on(name, "three NATS servers and three nodes", func(dir string) (*deployment.Deployment, error) {
		return deployment.Outside(b.binaries, dir, 3, 3, b.agents())
	}, do)
}

// leading is the server that leads the log.
func (b *bench) leading(d *deployment.Deployment) (*deployment.Process, error) {
	name, err := d.Streams.Leader(b.ctx, deployment.Log)
	if err != nil {
		return nil, err
	}
	for _, s := range d.Servers {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s leads, and is not ours", name)
}
