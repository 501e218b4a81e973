package inspect

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"path"

	"github.com/helixd/helixd/agentloop/workspace"
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

// ErrNoFolder: a workspace has not the folder that was asked for.
var ErrNoFolder = errors.New("httpapi: no such folder")

// Files answers GET /sessions/{id}/files: a page of what a folder of the workspace holds,
// with the content of its folders.
func (s *Routes) Files(w http.ResponseWriter, r *web.Request) error {
	p := r.Query.Page()
	folder := path.Clean(cmp.Or(r.Query.Word("path"), "."))
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	if err := workspace.CheckName(folder); err != nil {
		return web.Invalid("path", err.Error())
	}
	all, truncated, err := s.loop.ListFiles(r.Context(), r.Session, folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoFolder
	case errors.Is(err, workspace.ErrNotFolder):
		return web.Invalid("path", "is a file, not a folder")
	case errors.Is(err, workspace.ErrOutside):
		return web.Invalid("path", "leads out of the workspace")
	case errors.Is(err, workspace.ErrQuota):
		return web.Invalid("path", "has too many or too deep folders to be listed")
	case err != nil:
		return err
	}
	page := web.MapPage(web.PageOf(all, p), func(e workspace.Entry) api.File {
		f := api.File{Path: path.Join(folder, e.Name), Folder: e.Dir}
		if !e.Dir {
			f.Size = e.Size
		}
		if !e.Modified.IsZero() {
			f.Modified = e.Modified.UnixMilli()
		}
		return f
	})
	return r.OK(w, api.FilesPage{Page: page, Truncated: truncated})
}
