package operate

import (
	"context"
	"math"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/snapshot/backup"
)

// Backup answers GET /backup: the whole log, and what is stored beside it, in the format of package snapshot/backup. rate
// limits it, in bytes a second before compression. Without the end of the answer the file
// is no backup, and a restore refuses it.
func (s *Routes) Backup(w http.ResponseWriter, r *web.Request) error {
	// It is about all sessions, as retention is.
	if err := r.Allow(auth.OpBackup, auth.AllSessions); err != nil {
		return err
	}
	log, ok := s.Log.(eventlog.Copier)
	if !ok {
		return ErrNoBackup
	}
	rate := r.Query.Integer("rate", 0, backup.MinRate, math.MaxInt)
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	r.Audit("backup begun")
	out := &pieces{r: r, w: w, rc: http.NewResponseController(w)}
	if r.Method == http.MethodHead {
		out.begin()
		return nil
	}
	ctx, cancel := r.WhileAllowed(r.Context(), auth.AllSessions)
	defer cancel()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err := backup.Take(ctx, log, s.States, out, backup.Options{Rate: int64(rate), Helixd: s.Version, Beside: s.Beside})
	if out.left {
		panic(http.ErrAbortHandler)
	}
	return err // before the first piece an error answer, after it an abort
}

// pieces writes an answer piece by piece.
type pieces struct {
	r    *web.Request
	w    http.ResponseWriter
	rc   *http.ResponseController
	left bool // the client
}

func (p *pieces) begin() {
	h := p.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/zstd")
	h.Set("Content-Disposition", `attachment; filename="helixd.backup"`)
}

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	p.begin() // with the first piece: before it, an error may be the answer
	if err := p.r.WriteAll(p.w, p.rc, b); err != nil {
		p.left = true
		return 0, err
	}
	return len(b), nil
}
