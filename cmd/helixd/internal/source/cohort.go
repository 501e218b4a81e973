package source

import (
	"context"
	"errors"
	"iter"

	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

// Cohort yields the sessions that a cohort may take. The server looks at what it knows of the filter,
// so that the records of other sessions are not sent.
func (s *Source) Cohort(ctx context.Context, f cohort.Filter) iter.Seq2[cohort.Source, error] {
	return func(yield func(cohort.Source, error) bool) {
		wanted := client.SessionFilter{AgentType: f.Agent, Status: f.Status, Tag: f.Tag, UserID: f.User, From: f.Since, To: f.Until}
		for found, err := range s.AllSessions(ctx, wanted) {
			source := cohort.Source{ID: found.SessionID, Records: func(ctx context.Context) iter.Seq2[eventlog.Record, error] {
				return s.wholeSession(ctx, found.SessionID)
			}}
			if !yield(source, err) {
				return
			}
		}
	}
}

// wholeSession yields all records of a session, with the errors of a log.
func (s *Source) wholeSession(ctx context.Context, id string) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range s.Records(ctx, id, client.RecordRange{Dead: true}) {
			if refused, ok := errors.AsType[*client.Error](err); ok {
				switch refused.Code {
				case api.CodeNotFound:
					err = eventlog.ErrSessionNotFound
				case api.CodeTruncated:
					err = &eventlog.TrimmedError{}
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
