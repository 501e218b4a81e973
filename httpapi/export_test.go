package httpapi

import (
	"context"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// SetWriteTimeout makes a stuck client be dropped sooner.
func SetWriteTimeout(s *Server, d time.Duration) { s.gate.WriteTimeout = d }

// SetBodyTimeout makes a body that nobody reads be given up sooner.
func SetBodyTimeout(s *Server, d time.Duration) { s.gate.BodyTimeout = d }

// SetBodies bounds the bodies that are under way, of one caller and of all.
func SetBodies(s *Server, ofCaller, ofAll int64) { s.gate.Bodies = web.NewBudget(ofCaller, ofAll) }

// SetAnswers bounds the large answers that are under way, of one caller and of all.
func SetAnswers(s *Server, ofCaller, ofAll int64) { s.gate.Answers = web.NewBudget(ofCaller, ofAll) }

// HeldAnswers returns how many bytes the large answers under way have.
func HeldAnswers(s *Server) int64 { return s.gate.Answers.Held() }

// HeldBodies returns how many bytes of bodies under way have arrived.
func HeldBodies(s *Server) int64 { return s.gate.Bodies.Held() }

// HoldParse takes a caller's turn to parse a large body.
func HoldParse(s *Server, c auth.Caller) (giveBack func(), err error) {
	return s.gate.Parses.Take(context.Background(), c)
}

// Parsing returns how many requests parse a large body of a caller's, or wait for it.
func Parsing(s *Server, c auth.Caller) int { return s.gate.Parses.Waiting(c) }

// HoldEncode takes a caller's turn to encode a large answer.
func HoldEncode(s *Server, c auth.Caller) (giveBack func(), err error) {
	return s.gate.Encodes.Take(context.Background(), c)
}

// Encoding returns how many requests encode a large answer for a caller, or wait for it.
func Encoding(s *Server, c auth.Caller) int { return s.gate.Encodes.Waiting(c) }

// HoldDiff takes a caller's turn to compare two states.
func HoldDiff(s *Server, c auth.Caller) (giveBack func(), err error) {
	return s.inspect.Diffs.Take(context.Background(), c)
}

// Diffing returns how many requests compare two states for a caller, or wait for it.
func Diffing(s *Server, c auth.Caller) int { return s.inspect.Diffs.Waiting(c) }

// SetEraseTimeout makes an erasure be answered sooner.
func SetEraseTimeout(s *Server, d time.Duration) { s.control.EraseTimeout = d }

// SetClock sets the time by which tickets expire.
func SetClock(s *Server, now func() time.Time) { s.now = now }

// TestRoute is a row of the routing table, of helixd's own protocol.
type TestRoute struct {
	Method, Pattern string
	Params          string // the query's
	Op              auth.Operation
	// NamesIn is where a request names its session: "path", "query", "body",
	// "both" for two of them in the query, "scope" where it has memories, or ""
	// for nowhere.
	NamesIn string
}

// RouteTable returns the routing table.
func RouteTable() []TestRoute {
	var rows []TestRoute
	for _, rt := range routeTable {
		if protocolOf(rt.pattern) != nil {
			continue // its package tests it
		}
		in := map[source]string{
			inPath: "path", inPathNew: "path", inPathOrNothing: "path", inQuery: "query", inBody: "body", inBodyNew: "body", inBoth: "both",
			inScope: "scope",
		}[rt.session]
		rows = append(rows, TestRoute{rt.method, rt.pattern, rt.params, rt.op, in})
	}
	return rows
}
