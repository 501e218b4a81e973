package httpapi

import (
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
)

// workspace answers GET /workspace?sessionId=, and the same as /workspaces.
func (s *inspectRoutes) workspace(w http.ResponseWriter, r *request) error {
	d, err := s.loop.DescribeWorkspace(r.Context(), r.session)
	if err != nil {
		return err
	}
	return r.ok(w, api.WorkspaceAnswer{Workspace: (*api.Workspace)(d.Snapshot)})
}
