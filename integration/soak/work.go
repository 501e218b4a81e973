//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// work is a run with a tool, an approval and a client's tool; some are
// interrupted and resumed.
func (s *soak) work(session string, r *rand.Rand) {
	l := &ledger{session: session}
	defer s.follow(l, 1)()
	err := s.patiently(func() error {
		started, err := s.api.Start(s.ctx, client.StartRequest{SessionID: session, AgentType: agentWorker, Messages: client.Text("Go.")})
		if err == nil {
			l.runs = append(l.runs, started.RunID)
		}
		return err
	}, api.CodeAlreadyRunning, api.CodeAlreadyCompleted)
	if s.refused(session, "start", err) {
		return
	}
	l.create()
	s.count(func(c *counts) { c.runs++ })
	var interrupt time.Time
	if r.IntN(3) == 0 {
		interrupt = time.Now().Add(between(r, 2*time.Second, 20*piece))
	}
	for s.sleep(s.ctx, between(r, time.Second, 3*time.Second)) {
		var status api.Status
		err := s.patiently(func() (err error) { status, err = s.api.Status(s.ctx, session); return err })
		if s.refused(session, "status", err) {
			return
		}
		switch status.Status {
		case "running":
			if !interrupt.IsZero() && time.Now().After(interrupt) {
				interrupt = time.Time{}
				began := time.Now()
				err := s.patiently(func() error { return s.api.Interrupt(s.ctx, session, "for a while") })
				if deployment.Code(err) == api.CodeInterruptDeadline {
					s.count(func(c *counts) { c.late++ }) // it is kept: that it is met is seen below
				} else if s.refused(session, "interrupt", err) {
					return
				}
				s.took(&s.stops, began)
				s.count(func(c *counts) { c.interrupts++ })
			}
		case "paused":
			if !s.answer(l) {
				return
			}
		case "interrupted":
			if !s.resume(l) {
				return
			}
		case "completed":
			s.close(l, r)
			return
		default:
			s.violate(session, fmt.Errorf("it is %s: %s", status.Status, status.Error))
			return
		}
	}
}

// answer answers what a run waits for, and has it continue.
func (s *soak) answer(l *ledger) bool {
	var now api.SessionSummary
	err := s.patiently(func() (err error) { now, err = s.api.Session(s.ctx, l.session); return err })
	if s.refused(l.session, "summary", err) {
		return false
	}
	for _, call := range now.PendingToolCalls {
		answer := client.Submission{SessionID: l.session, ToolCallID: call.ToolCallID, Kind: fact.SubmitApproval, Approved: true}
		if call.Kind != fact.PendingApproval {
			answer.Kind, answer.Approved, answer.Result = fact.SubmitClientResult, false, json.RawMessage(`"answered"`)
		}
		err := s.patiently(func() error { _, err := s.api.SubmitToolResult(s.ctx, answer); return err }, api.CodeNotFound)
		if s.refused(l.session, "submit", err) {
			return false
		}
		l.accepted = append(l.accepted, call.ToolCallID)
		s.count(func(c *counts) { c.approvals++ })
	}
	return s.resume(l)
}

func (s *soak) resume(l *ledger) bool {
	err := s.patiently(func() error {
		started, err := s.api.Resume(s.ctx, client.ResumeRequest{SessionID: l.session})
		if err == nil {
			l.runs = append(l.runs, started.RunID)
		}
		return err
	}, api.CodeAlreadyRunning, api.CodeAlreadyCompleted)
	return !s.refused(l.session, "resume", err)
}
