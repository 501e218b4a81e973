package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// store makes sessions of the log of a recorded session and its lanes, so that people can look at
// any moment of them.
func (j *journal) store(ctx context.Context, s *cohort.Session, n int, d driven) (*stored, error) {
	if j.log == nil {
		return nil, nil
	}
	// A log that has the session, or another one of its id, keeps it.
	if err := j.imported(ctx, s.ID, s.Log); err != nil && !errors.Is(err, eventlog.ErrSessionExists) && !invalid(err) {
		return nil, err
	}
	of := &stored{}
	var err error
	if of.Baseline, err = j.lanes(ctx, s.ID, fmt.Sprintf("%s.%d-baseline", j.id, n+1), d.baseline); err != nil {
		return nil, err
	}
	of.Candidate, err = j.lanes(ctx, s.ID, fmt.Sprintf("%s.%d-candidate", j.id, n+1), d.candidate)
	return of, err
}

// lanes stores lanes under new ids, and returns those.
func (j *journal) lanes(ctx context.Context, id, name string, repeats [][]eventlog.Record) (ids []string, err error) {
	for n, records := range repeats {
		to, err := fmt.Sprintf("%s-%d", name, n+1), eventlog.ErrSessionExists
		for try := 2; errors.Is(err, eventlog.ErrSessionExists); try++ {
			var named []eventlog.Record
			if named, err = cohort.Named(records, id, to, cohort.LaneType); err == nil {
				err = j.imported(ctx, to, named)
			}
			if errors.Is(err, eventlog.ErrSessionExists) { // a lab that was killed had driven it otherwise
				to = fmt.Sprintf("%s-%d.%d", name, n+1, try)
			}
		}
		if invalid(err) { // it did nothing, or its ids would be too long
			to, err = "", nil
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, to)
	}
	return ids, nil
}

func invalid(err error) bool {
	_, is := errors.AsType[*eventlog.ValidationError](err)
	return is
}

// imported stores records as a session. A *eventlog.ValidationError says why they can't be one.
func (j *journal) imported(ctx context.Context, id string, records []eventlog.Record) error {
	_, err := eventlog.Import(ctx, j.log, id, each(records), eventlog.ImportOptions{Restore: projector.TranslateRestore})
	return err
}

// Sessions are the ids of a lab's lanes that are sessions of the log, and last the lab's own.
func Sessions(ctx context.Context, log eventlog.Log, id string) (ids []string, err error) {
	for r, err := range log.Read(ctx, id, 0, 0) {
		if err != nil {
			return nil, err
		}
		c, is := projector.Decode(r).Chunk.(*eventlog.CustomEvent)
		if !is || c.EventName != resultEvent {
			continue
		}
		var row judged
		if err := json.Unmarshal(c.Data, &row); err != nil {
			return nil, err
		}
		if row.Stored == nil {
			continue
		}
		for _, lane := range slices.Concat(row.Stored.Baseline, row.Stored.Candidate) {
			if lane != "" {
				ids = append(ids, lane)
			}
		}
	}
	return append(ids, id), nil
}

func each(records []eventlog.Record) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
