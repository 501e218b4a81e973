package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/common/expfmt"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// metrics answers GET /metrics in Prometheus' text format. It leaves out and logs metrics
// that can't be collected.
func (s *Server) metrics(w http.ResponseWriter, r *web.Request) error {
	if s.opts.Gatherer == nil {
		return errNoMetrics
	}
	if !slices.Contains(s.opts.Public, metricsRoute) { // they are about all sessions
		if err := r.Allow(auth.OpMetrics, auth.AllSessions); err != nil {
			return err
		}
	}
	families, err := s.opts.Gatherer.Gather()
	var text bytes.Buffer
	for _, f := range families {
		_, bad := expfmt.MetricFamilyToText(&text, f)
		err = errors.Join(err, bad)
	}
	if err != nil {
		s.opts.Logger.ErrorContext(r.Context(), "metrics are left out", "error", err)
	}
	h := w.Header()
	h.Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	h.Set("Content-Length", strconv.Itoa(text.Len()))
	h.Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	r.ExtendDeadline(rc)
	w.WriteHeader(http.StatusOK)
	_ = r.WriteAll(w, rc, text.Bytes()) // a client that has left is no error
	return nil
}
