package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/api"
)

// maxReadiness bounds the answer of GET /readyz, in bytes.
const maxReadiness = 1 << 20

// Readiness is an answer of GET /readyz.
type Readiness struct {
	api.Readiness
	Error  string `json:"error"` // of a daemon that is starting, or that refuses the request
	Daemon bool   `json:"-"`     // whether it is an answer that a daemon gives
	Status string `json:"-"`     // of HTTP
	Date   string `json:"-"`     // the header of that name
}

// Ready asks whether the daemon takes work.
func (s *Source) Ready(ctx context.Context) (r Readiness, err error) {
	answer, err := s.Client.Send(ctx, remotehttp.Request{Method: http.MethodGet, Route: "/readyz"})
	if err != nil {
		return r, Explained(err)
	}
	defer answer.Close()
	err = json.NewDecoder(io.LimitReader(answer, maxReadiness)).Decode(&r)
	r.Status = fmt.Sprintf("%d %s", answer.Status(), http.StatusText(answer.Status()))
	r.Date = answer.Header().Get("Date")
	unready := answer.Status() == http.StatusServiceUnavailable && !r.Ready
	r.Daemon = err == nil && (r.Error != "" || unready || answer.Status() == http.StatusOK && r.Ready)
	return r, nil
}
