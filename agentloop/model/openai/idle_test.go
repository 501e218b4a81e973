package openai_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/eventlog/fact"
)

// impatient calls s and waits for each event no longer than idle.
func impatient(ctx context.Context, s *modeltest.Server, idle time.Duration, emit func(model.Event) error) (model.Answer, error) {
	opts := options(s)
	opts.IdleTimeout = idle
	return openai.New("m", opts).Generate(ctx, hello(), emit)
}

func requireIdle(t *testing.T, err error) {
	t.Helper()
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, model.CodeTimeout, e.Code)
	require.True(t, e.Retryable)
	require.Contains(t, e.Message, "stopped in the middle")
}

func TestIdleProvider(t *testing.T) {
	for name, stream := range map[string]modeltest.Stream{
		"before the first event": {},
		"between events":         {Events: deltas(`null`, `{"content":"x"}`).Events},
		"within an event":        {Events: deltas(`null`, `{"content":"x"}`).Events, Tail: "data: {"},
		"in place of a stream":   {ContentType: "application/json", Tail: `{"error":`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stream.Hang = true
				began := time.Now()
				var c collected
				_, err := impatient(t.Context(), modeltest.ServePiped(t, stream), time.Minute, c.Emit)
				requireIdle(t, err)
				require.Equal(t, time.Minute, time.Since(began))
				if len(stream.Events) > 0 {
					require.Equal(t, "x", c.Text)
				}
			})
		})
	}
}

// A failed answer is read whole, before there is a stream.
func TestIdleInAnErrorsBody(t *testing.T) {
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		read, write := io.Pipe()
		context.AfterFunc(r.Context(), func() { write.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}, Body: read, Request: r}, nil
	})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := openai.New("m", &openai.Options{HTTPClient: client, IdleTimeout: 50 * time.Millisecond})
	_, err := m.Generate(ctx, hello(), nil)
	requireIdle(t, err)
}

// Its connection may break after the finish_reason, too.
func TestIdleAfterTheAnswerIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modeltest.ServePiped(t, modeltest.Stream{Events: deltas(`"stop"`, `{"content":"all"}`).Events, Hang: true})
		answer, err := impatient(t.Context(), s, time.Minute, new(collected).Emit)
		require.NoError(t, err)
		require.Equal(t, fact.StopEndTurn, answer.StopReason)
	})
}

func TestIdleTimeoutBoundsNoAnswerThatGoesOn(t *testing.T) {
	pieces := make([]string, 10)
	for i := range pieces {
		pieces[i] = `{"content":"x"}`
	}
	synctest.Test(t, func(t *testing.T) {
		s := modeltest.ServePiped(t, deltas(`"stop"`, pieces...).After(50*time.Second))
		var c collected
		_, err := impatient(t.Context(), s, time.Minute, c.Emit)
		require.NoError(t, err)
		require.Equal(t, "xxxxxxxxxx", c.Text)
	})
}

// A slow log is not a slow provider.
func TestIdleTimeoutLeavesOutEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modeltest.ServePiped(t, modeltest.Stream{Events: deltas(`"stop"`, `{"content":"x"}`, `{"content":"y"}`).Events}.After(time.Second))
		var c collected
		_, err := impatient(t.Context(), s, time.Minute, func(e model.Event) error {
			time.Sleep(2 * time.Minute) // the slow log
			return c.Emit(e)
		})
		require.NoError(t, err)
		require.Equal(t, "xy", c.Text)
	})
}

func TestCancelledWhileIdle(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Stream{Events: deltas(`null`, `{"content":"x"}`).Events, Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := impatient(ctx, s, time.Minute, func(model.Event) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
}
