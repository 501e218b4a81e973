package projector

import (
	"maps"
	"slices"
)

// Clone returns a state that can be folded further independently of t. The two share
// everything that no fold changes, messages above all, so that a clone of a long
// conversation costs little time and memory.
func (t *Tree) Clone() *Tree {
	c := *t
	c.Session = t.Session.clone()
	c.Children = maps.Clone(t.Children)
	for id, s := range c.Children {
		if s != nil {
			child := s.clone()
			c.Children[id] = &child
		}
	}
	c.Appends, c.OldKeys = t.Appends.clone(), slices.Clip(t.OldKeys)
	c.Durable = t.Durable.Clone()
	c.Dead, c.Parked = slices.Clip(t.Dead), slices.Clip(t.Parked)
	return &c
}

// Lists that only grow are shared up to their end. Appending to the original writes
// after that end; appending to the clone must copy the list first.
func (s *Session) clone() Session {
	c := *s
	c.Messages, c.Checkpoints, c.TruncatedCalls = slices.Clip(s.Messages), slices.Clip(s.Checkpoints), slices.Clip(s.TruncatedCalls)
	c.Asides = slices.Clip(s.Asides)
	c.Runs, c.RemoteCalls = slices.Clone(s.Runs), slices.Clone(s.RemoteCalls)
	c.Usage.Runs, c.SubAgentTurns = maps.Clone(s.Usage.Runs), maps.Clone(s.SubAgentTurns)
	c.Stopped = copyOf(s.Stopped)
	if c.Turn = copyOf(s.Turn); c.Turn != nil {
		c.Turn.Stop = copyOf(s.Turn.Stop)
		c.Turn.Step = s.Turn.Step.clone()
	}
	return c
}

func (s *Step) clone() *Step {
	c := copyOf(s)
	if c == nil {
		return nil
	}
	c.Streamed, c.Calls, c.Partial = copyOf(s.Streamed), slices.Clone(s.Calls), slices.Clone(s.Partial)
	for i := range c.Calls {
		c.Calls[i].Streamed = copyOf(c.Calls[i].Streamed)
	}
	for i := range c.Partial {
		c.Partial[i].Text = slices.Clip(c.Partial[i].Text)
	}
	return c
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
