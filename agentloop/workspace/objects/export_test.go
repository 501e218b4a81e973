package objects

import "context"

// NewJetStream is the API that a provider uses, with another patience.
var NewJetStream = newJetStream

// Replicate has a removal go as on that many replicas.
func (p *Provider) Replicate(n int) { p.opts.Replicas = n }

// Knowing is a provider without a server.
func Knowing() *Provider { return newProvider(nil) }

// Use uses what is known of a tree's snapshots until release is called.
func (p *Provider) Use(ctx context.Context, root string) (release func(), err error) {
	_, release, err = p.keptOf(ctx, root)
	return release, err
}

// Knows reports whether something is known of a tree's snapshots.
func (p *Provider) Knows(root string) bool { return p.trees[root] != nil }

const MaxTrees = maxTrees
