package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Before it closes idle connections a server has its clients leave them.
func TestALeavingServerClosesConnectionsAfterTheirAnswers(t *testing.T) {
	f := newFront(10, nil, slog.New(slog.DiscardHandler))
	f.open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.serve(listener)
	client := &http.Client{Transport: new(http.Transport)}
	closes := func() bool {
		resp, err := client.Get("http://" + listener.Addr().String())
		require.NoError(t, err)
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "ok", string(all))
		return resp.Close
	}
	require.False(t, closes())
	f.leave()
	require.True(t, closes())
	f.shutdown(func() {})
	require.NoError(t, f.wait())
}
