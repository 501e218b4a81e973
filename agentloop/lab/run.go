package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/lane"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
)

// Run tries the candidate on every session of the cohort. The error says why the lab could not
// run; sessions that could not be judged are in the report.
func Run(ctx context.Context, options Options) (*result.Report, error) {
	o := &options
	if o.Cohort == nil || len(o.Candidate) == 0 {
		return nil, errors.New("lab: a cohort and a candidate are needed")
	}
	o.Parallel = cmp.Or(o.Parallel, runtime.GOMAXPROCS(0))
	o.Repeat = max(o.Repeat, 1)
	if o.SessionTime == 0 {
		o.SessionTime = DefaultSessionTime
		if o.Live {
			o.SessionTime = DefaultLiveTime
		}
	}
	o.Unmatched = cmp.Or(o.Unmatched, Refuse)
	o.Rules.Live = o.Rules.Live || o.Live
	agentOf := map[string]string{}
	for _, one := range o.Cohort.Sessions {
		agentOf[one.ID] = one.Agent
	}
	if idle := o.Rules.Suite.Idle(agentOf); idle != "" && len(agentOf) > 0 {
		return nil, fmt.Errorf("assertion %q is about no session of the cohort: look at its agent and its sessions", idle)
	}
	for _, agents := range [][]Agent{o.Candidate, o.Baseline} { // so that an ill-defined agent is no verdict
		loop, err := engine.New(memory.New(), newFrozen(o, nil, nil, nil).agents(agents), nil)
		if err != nil {
			return nil, err
		}
		loop.Stop()
	}
	j, err := openJournal(ctx, o)
	if err != nil {
		return nil, err
	}
	l := &laboratory{o: o, journal: j, spent: j.spent(o.Parallel)}
	if l.labels, err = j.labels(ctx, o.Cohort.Header.Hash); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	maps.Copy(l.labels, o.Labels)
	if err := l.all(ctx); err != nil {
		return nil, err
	}
	report := l.report()
	report.Lab = j.id
	return report, j.end(ctx, report)
}

// laboratory is a lab that runs.
type laboratory struct {
	o       *Options
	journal *journal
	spent   *spent
	labels  map[string]bool

	mu      sync.Mutex
	results []result.Comparison
}

// all judges the sessions, several at once.
func (l *laboratory) all(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.o.Parallel)
	for n := range l.o.Cohort.Sessions {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return l.one(ctx, n)
		})
	}
	return group.Wait()
}

// one judges the session of a number, unless the journal has its lanes.
func (l *laboratory) one(ctx context.Context, n int) error {
	s := &l.o.Cohort.Sessions[n]
	kept, ok := l.journal.done[s.ID] // nobody writes to it once it is read
	var driven driven
	if !ok {
		began := time.Now()
		mine := &spent{of: l.spent}
		lanes, err := l.lanes(ctx, s, &driven, mine)
		if err != nil {
			return err
		}
		kept = entry{Session: lanes, Seconds: time.Since(began).Seconds(), Cost: mine.cost, Tokens: mine.tokens}
	}
	compared := l.o.Rules.Compare(kept.Session)
	if !ok {
		var of *stored
		if compared.Verdict != result.Same {
			var err error
			if of, err = l.journal.store(ctx, s, n, driven); err != nil {
				return fmt.Errorf("storing the lanes of session %s: %w", s.ID, err)
			}
		}
		if err := l.journal.put(ctx, kept, compared, of); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.results = append(l.results, compared); l.o.Progress != nil {
		l.o.Progress(len(l.results), len(l.o.Cohort.Sessions))
	}
	return nil
}

// driven are the records of the lanes of a session, one list for each repeat.
type driven struct{ baseline, candidate [][]eventlog.Record }

// lanes drives the baseline and the candidate.
func (l *laboratory) lanes(ctx context.Context, s *cohort.Session, d *driven, mine *spent) (result.Session, error) {
	recorded := lane.Read(s.ID, s.Log, nil)
	out := result.Session{ID: s.ID, Agent: recorded.Created.AgentType, Observed: recorded.Lane}
	out.Observed.Prefix = result.Prefix(out.Observed.Decisions, len(out.Observed.Decisions))
	for _, f := range recorded.Found {
		if f.Turn != nil && f.Turn.Answer != nil {
			out.Observed.Cost += l.o.Prices[f.Turn.Answer.Model].Cost(f.Turn.Answer.Usage)
		}
	}
	why := recorded.Unfit
	if over := l.spent.over(l.o.Budget); why == "" && over != "" {
		why = over
	}
	if !slices.ContainsFunc(l.o.Candidate, func(a Agent) bool { return a.Name == out.Agent }) && why == "" {
		why = "the candidate has no agent " + out.Agent
	}
	if why != "" {
		out.Baseline, out.Candidate = []result.Lane{out.Observed}, []result.Lane{{Unjudged: why}}
		return out, nil
	}
	prior, err := l.baseline(ctx, recorded, &out, d, mine)
	if err != nil {
		return out, err
	}
	for range l.o.Repeat {
		driven, records, err := newFrozen(l.o, recorded, prior, mine).drive(ctx, l.o.Candidate)
		if err != nil {
			return out, err
		}
		if recorded.Stopped {
			lane.Cut(&out.Observed, &driven)
		}
		lane.Align(&out.Observed, &driven)
		out.Candidate, d.candidate = append(out.Candidate, driven), append(d.candidate, records)
	}
	return out, l.judge(ctx, &out, mine)
}

// baseline drives the baseline, if there is one that can be driven.
func (l *laboratory) baseline(ctx context.Context, recorded *lane.Recording, out *result.Session, d *driven, mine *spent) (*frozen, error) {
	if len(l.o.Baseline) == 0 {
		out.Baseline = []result.Lane{out.Observed}
		return nil, nil
	}
	var first *frozen
	for n := range l.o.Repeat {
		f := newFrozen(l.o, recorded, nil, mine)
		f.live = l.o.Live && n > 0 // what the recorded answers repeat says nothing of the model
		driven, records, err := f.drive(ctx, l.o.Baseline)
		if err != nil {
			return nil, err
		}
		if recorded.Stopped {
			lane.Cut(&out.Observed, &driven)
		}
		if first == nil {
			first = f
			lane.Complete(&out.Observed, driven)
		}
		if same := lane.Align(&out.Observed, &driven); !same && driven.Unjudged == "" && !f.live {
			driven.Unjudged = "it does not repeat what was recorded: is it the configuration that was recorded?"
		}
		out.Baseline, d.baseline = append(out.Baseline, driven), append(d.baseline, records)
	}
	return first, nil
}

func (l *laboratory) report() *result.Report {
	o := l.o
	head := result.Header{
		Cohort: o.Name, Hash: o.Cohort.Header.Hash, Sessions: len(o.Cohort.Sessions),
		Cost: l.spent.cost, Tokens: l.spent.tokens, Seconds: time.Since(l.spent.began).Seconds(), Labels: l.labels,
	}
	if o.Judge != nil {
		head.Judge = o.Judge.Report()
	}
	return result.New(head, l.results)
}

// T is what [Check] needs of a test.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Check runs the lab in a test, which fails for each regression and each session that could not be
// judged.
func Check(t T, o Options) *result.Report {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatalf("lab: %v", err)
		return nil
	}
	for what, list := range map[string][]result.Difference{"regression": r.Regressions, "not judged": r.Unjudged} {
		for _, d := range list {
			t.Errorf("lab: %s: session %s: %s\n  observed:  %s\n  baseline:  %s\n  candidate: %s",
				what, d.Place(), d.Why, d.Observed, d.Baseline, d.Candidate)
		}
	}
	return r
}

// RecordedTools are the names of the tools that an agent called in a cohort, in order: those of
// an MCP server are known only by their calls.
func RecordedTools(c *cohort.Cohort, agentType string) (names []string) {
	for _, s := range c.Sessions {
		for _, f := range lane.Read(s.ID, s.Log, nil).Found {
			if f.Result != nil && f.Agent == agentType && !slices.Contains(names, f.Result.ToolName) && f.Result.ErrorCode != agentloop.CodeToolNotFound {
				names = append(names, f.Result.ToolName)
			}
		}
	}
	slices.Sort(names)
	return names
}
