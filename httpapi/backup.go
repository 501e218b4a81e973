package httpapi

import (
	"context"
	"math"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/snapshot/backup"
)

// backup answers GET /backup: everything that the log holds, as package
// snapshot/backup writes it. rate bounds it, in bytes a second before they are
// compressed. A client that has not got the end of the answer has no backup;
// the file itself tells, too.
func (s *operateRoutes) backup(w http.ResponseWriter, r *request) error {
	// It is about all sessions, as retention is.
	if err := r.allow(auth.OpBackup, auth.AllSessions); err != nil {
		return err
	}
	log, ok := s.log.(eventlog.Copier)
	if !ok {
		return errNoBackup
	}
	r.audit("backup begun")
	rate, err := r.query.integer("rate", 0, backup.MinRate, math.MaxInt)
	if err != nil {
		return err
	}
	out := &pieces{r: r, w: w, rc: http.NewResponseController(w)}
	if r.Method == http.MethodHead {
		out.begin()
		return nil
	}
	ctx, cancel := r.whileAllowed(r.Context(), auth.AllSessions)
	defer cancel()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err = backup.Take(ctx, log, s.states, out, backup.Options{Rate: int64(rate), Helixd: s.version})
	if out.left {
		panic(http.ErrAbortHandler)
	}
	return err // before the first piece an error answer, behind it an abort
}

// pieces writes an answer piece by piece.
type pieces struct {
	r    *request
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
	if err := p.r.write(p.w, p.rc, b); err != nil {
		p.left = true
		return 0, err
	}
	return len(b), nil
}
