package lab

import (
	"context"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog/fact"
)

// Judge says whether a lane is good.
type Judge interface {
	Lane(ctx context.Context, l result.Lane) (result.Judgement, fact.TokenUsage, error)
	// Report describes the judge.
	Report() *result.JudgeReport
}

// judge has the lanes judged, if there is a judge.
func (l *laboratory) judge(ctx context.Context, s *result.Session, mine *spent) error {
	if l.o.Judge == nil {
		return nil
	}
	lanes := []*result.Lane{&s.Observed}
	for i := range s.Baseline {
		lanes = append(lanes, &s.Baseline[i])
	}
	for i := range s.Candidate {
		lanes = append(lanes, &s.Candidate[i])
	}
	for _, of := range lanes {
		if of.Unjudged != "" {
			continue
		}
		if of.Unjudged = l.spent.over(l.o.Budget); of.Unjudged != "" {
			continue
		}
		said, used, err := l.o.Judge.Lane(ctx, *of)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		mine.add(used, l.o.Prices[l.o.Judge.Report().Model].Cost(used))
		if err != nil {
			of.Unjudged = "the judge failed: " + err.Error()
			continue
		}
		of.Judgement = &said
	}
	return nil
}
