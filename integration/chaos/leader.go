//go:build unix

package main

import "github.com/helixd/helixd/integration/deployment"

// leader returns the node that leads the log's stream, or nil if no node
// knows of one.
func (t *trial) leader() *node {
	for _, asked := range t.members() {
		name, _ := deployment.Streams{asked.NATS}.Leader(t.ctx, deployment.Log) // the next one may know
		for _, n := range t.members() {
			if n.Name == name {
				return n
			}
		}
	}
	return nil
}
