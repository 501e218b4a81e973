package httpapi

import (
	"log/slog"
	"sync/atomic"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot"
)

// chatRoutes serve AI SDK clients.
type chatRoutes struct {
	log     eventlog.Log
	loop    *engine.Loop
	states  *snapshot.Store
	logger  *slog.Logger
	control *controlRoutes
	prices  *prices
	current atomic.Pointer[ChatOptions] // nil: there is no chat
}

// newChatRoutes returns the routes of a server with these options; nil: there is no
// chat.
func newChatRoutes(log eventlog.Log, loop *engine.Loop, states *snapshot.Store, logger *slog.Logger, control *controlRoutes, prices *prices, o *ChatOptions) *chatRoutes {
	s := &chatRoutes{log: log, loop: loop, states: states, logger: logger, control: control, prices: prices}
	s.configure(o)
	return s
}

// configure replaces the options.
func (s *chatRoutes) configure(o *ChatOptions) { s.current.Store(o) }

// options are those of now; where there is no chat, the zero value.
func (s *chatRoutes) options() *ChatOptions {
	if o := s.current.Load(); o != nil {
		return o
	}
	return &ChatOptions{}
}
