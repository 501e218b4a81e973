package chat

import (
	"log/slog"
	"sync/atomic"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/control"
	"github.com/helixd/helixd/httpapi/internal/inspect"
	"github.com/helixd/helixd/snapshot"
)

// Routes serve AI SDK clients.
type Routes struct {
	log     eventlog.Log
	loop    *engine.Loop
	states  *snapshot.Store
	logger  *slog.Logger
	control *control.Routes
	prices  *inspect.Prices
	current atomic.Pointer[Options] // nil: there is no chat
}

// New returns the routes of a server with these options; nil: there is no
// chat.
func New(log eventlog.Log, loop *engine.Loop, states *snapshot.Store, logger *slog.Logger, control *control.Routes, prices *inspect.Prices, o *Options) *Routes {
	s := &Routes{log: log, loop: loop, states: states, logger: logger, control: control, prices: prices}
	s.Configure(o)
	return s
}

// Configure replaces the options.
func (s *Routes) Configure(o *Options) { s.current.Store(o) }

// options are those of now; where there is no chat, the zero value.
func (s *Routes) options() *Options {
	if o := s.current.Load(); o != nil {
		return o
	}
	return &Options{}
}
