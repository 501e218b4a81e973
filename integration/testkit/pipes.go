package testkit

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

// Piped serves handler and returns a client of it; both end with the test. They are
// joined by pipes, so that a test may have its own clock ([synctest.Test]): a network
// can't be part of that. The host of a URL does not matter.
func Piped(t *testing.T, handler http.HandlerFunc) *http.Client {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: handler}
	go func() { _ = srv.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
		synctest.Wait()
	})
	return &http.Client{Transport: transport}
}

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
