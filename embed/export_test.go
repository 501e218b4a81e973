package embed

import "net"

// HiddenPort is where a server listens for clients though nobody asked it to.
func (s *Server) HiddenPort() int { return s.instance().srv.Addr().(*net.TCPAddr).Port }

// DataDir is the server's folder.
func (s *Server) DataDir() string { return s.opts.DataDir }
