package source

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/helixd/helixd/httpapi"
)

// maxReadiness bounds the answer of GET /readyz, in bytes.
const maxReadiness = 1 << 20

// readiness is an answer of GET /readyz. With Error it is that of a daemon that
// is starting, or that refuses the request.
type readiness struct {
	httpapi.Readiness
	Error string `json:"error"`
}

// ReadinessOf reports whether an answer is one that a daemon gives.
func ReadinessOf(resp *http.Response) (answer readiness, ok bool) {
	err := json.NewDecoder(io.LimitReader(resp.Body, maxReadiness)).Decode(&answer)
	unready := resp.StatusCode == http.StatusServiceUnavailable && !answer.Ready
	return answer, err == nil && (answer.Error != "" || unready || resp.StatusCode == http.StatusOK && answer.Ready)
}
