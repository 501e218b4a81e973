package chat

import (
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
	control *control.Routes
	prices  *inspect.Prices
	current atomic.Pointer[Options] // nil: there is no chat
}

// New returns the routes. If o is nil, the server has no chat.
func New(log eventlog.Log, loop *engine.Loop, states *snapshot.Store, control *control.Routes, prices *inspect.Prices, o *Options) *Routes {
	s := &Routes{log: log, loop: loop, states: states, control: control, prices: prices}
	s.Configure(o)
	return s
}

// Configure replaces the options.
func (s *Routes) Configure(o *Options) { s.current.Store(o) }

// options returns the current options, or the zero value if there is no chat.
func (s *Routes) options() *Options {
	if o := s.current.Load(); o != nil {
		return o
	}
	return &Options{}
}
