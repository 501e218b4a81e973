package projector

import (
	"slices"

	"github.com/helixd/helixd/eventlog/fact"
)

// noteRemoteCalls records the beginnings and ends of a remote sub-agent's tool calls.
func (s *Session) noteRemoteCalls(calls []fact.RemoteCall) {
	for _, c := range calls {
		known := func(k fact.RemoteCall) bool { return k.ID == c.ID }
		if i := slices.IndexFunc(s.RemoteCalls, known); i >= 0 {
			s.RemoteCalls[i].Over = s.RemoteCalls[i].Over || c.Over
		} else {
			s.RemoteCalls = append(s.RemoteCalls, c)
		}
	}
}

// remoteOpen returns the ids of the remote calls that are not finished.
func (s *Session) remoteOpen() (open []string) {
	for _, c := range s.RemoteCalls {
		if !c.Over {
			open = append(open, c.ID)
		}
	}
	return open
}

// remoteBack restores the remote calls of an earlier state. The ids of the removed ones
// are not used again.
func (s *Session) remoteBack(at sessionAt) {
	n := max(min(at.RemoteCalls, len(s.RemoteCalls)), 0)
	for _, c := range s.RemoteCalls[n:] {
		s.TruncatedCalls = append(s.TruncatedCalls, c.ID)
	}
	s.RemoteCalls = slices.Clone(s.RemoteCalls[:n])
	for i := range s.RemoteCalls {
		s.RemoteCalls[i].Over = !slices.Contains(at.RemoteOpen, s.RemoteCalls[i].ID)
	}
}
