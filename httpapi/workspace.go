package httpapi

import (
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
)

// WorkspaceAnswer is the answer of GET /workspace (document 004).
type WorkspaceAnswer struct {
	Workspace *engine.EntrySnapshot `json:"workspace"` // null: the session has none
}

// workspace answers GET /workspace?sessionId=, and the same as /workspaces.
func (s *Server) workspace(w http.ResponseWriter, r *request) error {
	d, err := s.loop.DescribeWorkspace(r.Context(), r.session)
	if err != nil {
		return err
	}
	return s.ok(w, WorkspaceAnswer{Workspace: d.Snapshot})
}
