package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

// dripping takes each write just in time.
type dripping struct {
	http.ResponseWriter
	deadline time.Time
	writes   int
}

func (d *dripping) SetWriteDeadline(t time.Time) error { d.deadline = t; return nil }

func (d *dripping) Write(p []byte) (int, error) {
	d.writes++
	time.Sleep(min(20*time.Millisecond, time.Until(d.deadline)))
	if !time.Now().Before(d.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return d.ResponseWriter.Write(p)
}

// TestSlowReadersOfRecordsAreDropped: a client that takes each record just in time does
// not hold an answer of many for as long as it wants.
func TestSlowReadersOfRecordsAreDropped(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	a.append("s", created("s"))
	for range 100 {
		a.append("s", text("s", strings.Repeat("x", 100)))
	}
	httpapi.SetWriteTimeout(a.srv, 100*time.Millisecond)
	w := &dripping{ResponseWriter: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/sessions/s/records", nil)
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { a.srv.ServeHTTP(w, r) })
	require.Less(t, w.writes, 50)
}
