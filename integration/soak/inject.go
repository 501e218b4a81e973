//go:build unix

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// What goes wrong on purpose: the run must notice it.
const (
	injectClients = "clients" // clients come and never leave: what a leak looks like
	injectTwice   = "twice"   // a reader is shown a chunk again
	injectLost    = "lost"    // a producer gets an acknowledgement for a chunk that is not stored
)

var injections = []string{injectClients, injectTwice, injectLost}

// noticed judges how a run has ended in which something went wrong on purpose.
func (o options) noticed(err error) error {
	_, lost := errors.AsType[*evidence.Problem](err)
	_, leaks := errors.AsType[*leak](err)
	if o.inject == injectClients && leaks || o.inject != injectClients && lost {
		fmt.Printf("\nnoticed, as it should be: %v\n", err)
		return nil
	}
	return fmt.Errorf("-inject %s was not noticed: %w", o.inject, errors.Join(errors.New("it ended so"), err))
}

// comeAndStay has clients follow a session, more and more of them, to the end of
// the run.
func (s *soak) comeAndStay() {
	if s.inject != injectClients {
		return
	}
	for s.sleep(s.loaded, 100*time.Millisecond) {
		a, err := deployment.Connect(s.ctx, s.api, idleSession, 0, -1)
		if err != nil {
			return
		}
		s.stays = append(s.stays, a.Close)
	}
}
