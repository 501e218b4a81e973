package httpapi

import "time"

// SetWriteTimeout makes a stuck client be dropped sooner.
func SetWriteTimeout(s *Server, d time.Duration) { s.writeTimeout = d }
