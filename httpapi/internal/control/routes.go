package control

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
)

// Routes change sessions and the memories of agents.
type Routes struct {
	log      eventlog.Log
	loop     *engine.Loop
	states   *snapshot.Store
	quota    *quota.Quota     // nil: tenants have no limits
	manager  *memory.Manager  // nil: there are no memories
	models   readmodel.Models // nil: the forks of a session are not known
	logger   *slog.Logger
	patches  *web.Turns    // that are checked and may be much work
	deadline time.Duration // until which a stop is waited for
	// submissions is what a submission must fit; nil: anything.
	submissions *jsonschema.Resolved
	verbose     bool // say what is wrong with a submission
	// EraseTimeout is how long an erasure works before it is answered.
	EraseTimeout time.Duration
}

// Options configure the routes.
type Options struct {
	Log         eventlog.Log
	Loop        *engine.Loop
	States      *snapshot.Store
	Quota       *quota.Quota
	Memories    *memory.Manager
	ReadModels  readmodel.Models
	Logger      *slog.Logger
	Deadline    time.Duration
	Submissions json.RawMessage // a JSON Schema; nil: anything is taken
	Verbose     bool
}

// New returns an error if the schema of submissions is not valid.
func New(o Options) (*Routes, error) {
	s := &Routes{
		log: o.Log, loop: o.Loop, states: o.States, quota: o.Quota, manager: o.Memories, models: o.ReadModels, logger: o.Logger,
		deadline: o.Deadline, verbose: o.Verbose, patches: web.NewTurns(web.AtOnce, false), EraseTimeout: defaultEraseTimeout,
	}
	if o.Submissions == nil {
		return s, nil
	}
	var schema jsonschema.Schema
	err := json.Unmarshal(o.Submissions, &schema)
	if err == nil {
		s.submissions, err = schema.Resolve(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("httpapi: the schema of submissions can't be used: %w", err)
	}
	return s, nil
}
