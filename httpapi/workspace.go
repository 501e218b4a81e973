package httpapi

import "net/http"

// WorkspaceAnswer is the answer of GET /workspace (document 004). No agent of
// this server has a workspace, so there is none to describe.
type WorkspaceAnswer struct {
	Workspace any `json:"workspace"` // null
}

// workspace answers GET /workspace?sessionId=, and the same as /workspaces.
func (s *Server) workspace(w http.ResponseWriter, r *request) error {
	if _, err := s.log.Head(r.Context(), r.session); err != nil {
		return err
	}
	return s.ok(w, WorkspaceAnswer{})
}
