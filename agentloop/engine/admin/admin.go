// Package admin erases sessions, ends those that have expired, and removes files that
// nothing uses any more.
package admin

import (
	"time"

	"github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/agentloop/engine/internal/files"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
)

// Admin looks after all sessions: see [New].
type Admin struct {
	requests *request.Core
	files    *files.Files
	streams  *durable.Streams

	sweeping chan struct{}       // holds one while there is a sweep
	lookedAt map[string]lookedAt // by the last sweep, by session; the sweep's

	tidying   chan struct{}        // holds one while Tidy continues
	useless   map[string]time.Time // since when files are, by provider and root; Tidy's
	collected string               // the provider and root of which it had files collected last; Tidy's
}

// New returns what a loop has as its field Admin.
func New(requests *request.Core, f *files.Files) *Admin {
	streams := durable.New(requests.Log, requests.States, nil)
	return &Admin{requests: requests, files: f, streams: streams, sweeping: make(chan struct{}, 1), tidying: make(chan struct{}, 1)}
}
