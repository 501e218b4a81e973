package objects

import "context"

// NewJetStream is the API that a provider uses, with another patience.
var NewJetStream = newJetStream

// Collect collects a tree's garbage.
func (p *Provider) Collect(ctx context.Context, root string) error { return p.collect(ctx, root) }

// Replicate has a removal go as on that many replicas.
func (p *Provider) Replicate(n int, scan func(context.Context, []string) (bool, error)) {
	p.opts.Replicas, p.opts.Scan = n, scan
}
