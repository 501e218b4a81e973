package httpapi

import (
	"errors"
	"net/http"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/debugger"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// debugger answers GET / with the page of the debugger. An unknown caller gets it, too,
// with 401: a browser sends no token by itself, and the page asks for one. The page has no
// data.
func (s *Server) debugger(w http.ResponseWriter, r *web.Request) error {
	status := http.StatusOK
	switch err := r.Allow(auth.OpDebugger, ""); {
	case errors.Is(err, auth.ErrUnauthorized):
		status = http.StatusUnauthorized
	case err != nil:
		return err
	}
	return s.file(w, r, status, debugger.Page())
}

// debuggerFile answers GET /debugger/{file}. Like the page, it is for everybody.
func (s *Server) debuggerFile(w http.ResponseWriter, r *web.Request) error {
	f, ok := debugger.Asset(r.Name)
	if !ok {
		return errNoRoute
	}
	return s.file(w, r, http.StatusOK, f)
}

// file answers with a file that browsers cache and revalidate each time, so that they
// never mix the files of two versions for long.
func (s *Server) file(w http.ResponseWriter, r *web.Request, status int, f debugger.File) error {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", debugger.Policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	} else {
		h.Set("ETag", f.ETag)
		if web.HasTag(r.Header.Values("If-None-Match"), f.ETag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return r.RespondBytes(w, status, f.ContentType, f.Content)
}
