package inspect

import (
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Workspace answers GET /workspace?sessionId= and its second name, /workspaces.
func (s *Routes) Workspace(w http.ResponseWriter, r *web.Request) error {
	d, err := s.loop.DescribeWorkspace(r.Context(), r.Session)
	if err != nil {
		return err
	}
	return r.OK(w, api.WorkspaceAnswer{Workspace: (*api.Workspace)(d.Snapshot)})
}
