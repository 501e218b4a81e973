package daemon

import (
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
)

// pprofPath is where net/http/pprof expects to be.
const pprofPath = "/debug/pprof/"

// withPProf adds the profiles of the process to the server, for callers who may
// administer it: /debug/pprof/heap?gc=1 and the like, as package
// net/http/pprof has them.
func withPProf(c config.Debug, api *httpapi.Server) http.Handler {
	if !c.PProf {
		return api
	}
	mux := http.NewServeMux()
	mux.HandleFunc(pprofPath, pprof.Index)
	mux.HandleFunc(pprofPath+"cmdline", pprof.Cmdline)
	mux.HandleFunc(pprofPath+"profile", pprof.Profile)
	mux.HandleFunc(pprofPath+"symbol", pprof.Symbol)
	mux.HandleFunc(pprofPath+"trace", pprof.Trace)
	guarded := api.Guard(auth.OpAdmin, mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, pprofPath) {
			guarded.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}
