package stream

import "github.com/helixd/helixd/projector"

// Waiting returns "interrupted" or "paused" if the session waits to be
// resumed, else "".
func Waiting(s *projector.Session) string {
	switch {
	case !s.Waits():
		return ""
	case s.Status == projector.SessionInterrupted:
		return string(projector.SessionInterrupted)
	}
	return string(projector.SessionPaused)
}

// FailureOf returns why the session failed, or "".
func FailureOf(s *projector.Session) string {
	if s.Error == nil {
		return ""
	}
	return s.Error.Message
}
