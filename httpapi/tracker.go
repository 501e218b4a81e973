package httpapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// tracker knows which route answers, about which session, and whether it has
// begun to.
type tracker struct {
	http.ResponseWriter
	route   string
	session string        // empty: not known, or none
	request *http.Request // with its caller, as far as that is known
	tenant  string        // the caller's; empty: none, or not known
	payer   string        // whose budget a large answer uses; empty: nobody's
	allowed bool          // its caller may use the route
	came    time.Time     // when the request came
	begun   bool
	began   time.Time // when the answer did
	status  int
}

// logged is what log lines say of the request beside its id.
func (t *tracker) logged(more ...any) []any {
	attrs := []any{"route", t.route}
	if t.session != "" {
		attrs = append(attrs, eventlog.LogSession, t.session)
	}
	return append(attrs, more...)
}

func (t *tracker) WriteHeader(status int) {
	t.begin(status)
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracker) Write(p []byte) (int, error) {
	t.begin(http.StatusOK)
	return t.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (t *tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// begin notes when an answer begins, and with which status.
func (t *tracker) begin(status int) {
	if !t.begun {
		t.begun, t.status, t.began = true, status, time.Now()
	}
}

// otherRoute is the label of what is not one of few.
const otherRoute = "other"

// label is the pattern of the route that answers.
func (t *tracker) label() string { return cmp.Or(t.route, otherRoute) }

// newTracker follows the answer to a request.
func newTracker(w http.ResponseWriter, r *http.Request) *tracker {
	return &tracker{ResponseWriter: w, came: time.Now(), request: r}
}
