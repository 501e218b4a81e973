package web

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type noMeter struct{}

func (noMeter) Streaming(string) func()       { return func() {} }
func (noMeter) TenantStreams(string, float64) {}

// A stream that breaks off, whatever the reason, says so to its client, after all events
// that it had, and to the operator.
func TestAStreamThatBreaksOffSaysSo(t *testing.T) {
	for name, fails := range map[string]func(yield func(Event, error) bool){
		"an error": func(yield func(Event, error) bool) { yield(Event{}, errors.New("no such thing")) },
		"a panic":  func(func(Event, error) bool) { panic("no such thing") },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			gate := &Gate{logger: slog.New(slog.NewTextHandler(&log, nil)), meter: noMeter{}, heartbeat: time.Minute, WriteTimeout: time.Minute}
			w := httptest.NewRecorder()
			out := (&Request{Request: httptest.NewRequest("GET", "/", nil), Gate: gate}).NewEventWriter(w)
			pulled := 0
			out.Break = func() Event {
				require.Equal(t, 2, pulled, "it is called last")
				return Event{Data: []byte(`"broken"`)}
			}
			out.Send(t.Context(), "s", func(yield func(Event, error) bool) {
				for _, data := range []string{`1`, `2`} {
					pulled++
					if !yield(Event{Data: []byte(data)}, nil) {
						return
					}
				}
				fails(yield)
			})
			require.Equal(t, "data: 1\n\ndata: 2\n\ndata: \"broken\"\n\n", w.Body.String())
			require.Contains(t, log.String(), "stream broke off")
			require.Contains(t, log.String(), "no such thing")
		})
	}
}
