package web

import (
	"cmp"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Tracker is the writer of an answer. It records which route answers, about which
// session, and whether the answer has begun.
type Tracker struct {
	http.ResponseWriter
	Route   string
	Session string        // empty: not known, or none
	Request *http.Request // with its caller, as far as that is known
	Tenant  string        // the caller's; empty: none, or not known
	payer   string        // whose budget a large answer uses; empty: nobody's
	turn    func()        // ends the turn in which the answer is made; nil: there is none
	Allowed bool          // its caller may use the route
	Came    time.Time     // when the request came
	Begun   bool
	Began   time.Time // when the answer did
	Status  int
}

// Logged returns the request's log attributes, other than its id.
func (t *Tracker) Logged(more ...any) []any {
	attrs := []any{"route", t.Route}
	if t.Session != "" {
		attrs = append(attrs, eventlog.LogSession, t.Session)
	}
	return append(attrs, more...)
}

func (t *Tracker) WriteHeader(status int) {
	t.begin(status)
	t.ResponseWriter.WriteHeader(status)
}

func (t *Tracker) Write(p []byte) (int, error) {
	t.begin(http.StatusOK)
	return t.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (t *Tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *Tracker) endTurn() {
	if t.turn != nil {
		t.turn()
		t.turn = nil
	}
}

// begin records when the answer began, and its status.
func (t *Tracker) begin(status int) {
	if !t.Begun {
		t.Begun, t.Status, t.Began = true, status, time.Now()
	}
}

// OtherRoute is the label of metrics about requests of no route.
const OtherRoute = "other"

// Label is the pattern of the route that answers.
func (t *Tracker) Label() string { return cmp.Or(t.Route, OtherRoute) }

// NewTracker returns the writer of the answer to a request.
func NewTracker(w http.ResponseWriter, r *http.Request) *Tracker {
	return &Tracker{ResponseWriter: w, Came: time.Now(), Request: r}
}
