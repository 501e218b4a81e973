package httpapi

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot"
)

// controlRoutes change sessions, and the memories of agents.
type controlRoutes struct {
	log      eventlog.Log
	loop     *engine.Loop
	states   *snapshot.Store
	quota    *quota.Quota    // nil: tenants have no limits
	manager  *memory.Manager // nil: there are no memories
	patches  *turns          // that are checked and may be much work
	deadline time.Duration   // until which a stop is waited for
	// submissions is what a submission must fit; nil: anything.
	submissions *jsonschema.Resolved
	verbose     bool // say what is wrong with a submission
	// eraseTimeout is how long an erasure works before it is answered.
	eraseTimeout time.Duration
}

// controlOptions configure the routes.
type controlOptions struct {
	log         eventlog.Log
	loop        *engine.Loop
	states      *snapshot.Store
	quota       *quota.Quota
	memories    *memory.Manager
	deadline    time.Duration
	submissions json.RawMessage // a JSON Schema; nil: anything is taken
	verbose     bool
}

// newControlRoutes fails if the schema can't be used.
func newControlRoutes(o controlOptions) (*controlRoutes, error) {
	s := &controlRoutes{
		log: o.log, loop: o.loop, states: o.states, quota: o.quota, manager: o.memories, deadline: o.deadline, verbose: o.verbose,
		patches: newTurns(atOnce, false), eraseTimeout: defaultEraseTimeout,
	}
	if o.submissions == nil {
		return s, nil
	}
	var schema jsonschema.Schema
	err := json.Unmarshal(o.submissions, &schema)
	if err == nil {
		s.submissions, err = schema.Resolve(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("httpapi: the schema of submissions can't be used: %w", err)
	}
	return s, nil
}
