package mcptool

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one connection to a server, from its start to its end.
type session struct {
	mcp     *mcp.ClientSession
	proc    *process // nil over HTTP
	tools   []*mcp.Tool
	retired atomic.Bool   // no call may use it any more
	ours    atomic.Bool   // its end is our doing
	done    chan struct{} // closed when nothing of it is left

	life context.Context // ends with the connection
	end  context.CancelFunc
}

func newSession(m *mcp.ClientSession, p *process) *session {
	s := &session{mcp: m, proc: p, done: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// watch clears up after the connection when it ends, for any reason.
func (s *session) watch(log *slog.Logger) {
	defer close(s.done)
	_ = s.mcp.Wait() // the calls return why it ended
	s.end()
	_ = s.mcp.Close() // ends what the SDK still waits for
	died := !s.ours.Load()
	if s.proc != nil {
		s.proc.stop()
		log = log.With("command", s.proc.state.String())
	}
	if died {
		log.Warn("an MCP server's connection has ended")
	}
}

// usable reports whether calls may use the session.
func (s *session) usable() bool {
	return s.life.Err() == nil && !s.retired.Load()
}

// retire keeps further calls from a session that was found dead and ends it.
func (s *session) retire() {
	if s.retired.CompareAndSwap(false, true) {
		go s.finish()
	}
}

// close ends the session and waits until nothing of it is left.
func (s *session) close() {
	s.ours.Store(true)
	s.retired.Store(true)
	s.finish()
}

// finish ends the connection. A write that the server does not read is ended
// by closing the pipe.
func (s *session) finish() {
	if s.proc != nil {
		s.proc.stdin.Close()
	}
	_ = s.mcp.Close()
	<-s.done
}
