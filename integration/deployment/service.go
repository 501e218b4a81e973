package deployment

import (
	"errors"
	"net"
	"net/http"
	"time"
)

// Service replaces something that nodes call, such as a tool or a model.
type Service struct {
	URL    string
	server *http.Server
}

// Serve starts a service at its own address.
func Serve(h http.Handler) (*Service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Service{"http://" + l.Addr().String(), &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}}
	go func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			Say("a service for the nodes: %v", err)
		}
	}()
	return s, nil
}

// Stop closes the service and its connections.
func (s *Service) Stop() { s.server.Close() }
