package engine_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// since shows a time as how long after the beginning of the story it is.
func (te *teller) since(ms int64) string {
	return (time.Duration(ms-epoch.UnixMilli()) * time.Millisecond).String()
}

// state shows the whole tree of the session, or one of it.
func (te *teller) state(_ context.Context, _ *engine.Loop, only string) (string, error) {
	tree := te.fold(te.id())
	var out strings.Builder
	for _, s := range tree.Sessions() {
		if only == "" || s.SessionID == te.prefix+only {
			te.showSession(&out, s)
		}
	}
	require.Empty(te.t, tree.Parked, "the fold could use every record")
	return out.String(), nil
}

func (te *teller) showSession(out *strings.Builder, s *projector.Session) {
	p := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	kind := ""
	if c := s.Child; c != nil {
		kind = fmt.Sprintf(", %s sub-agent of %s", c.Mode, c.ParentSessionID)
	}
	p("%s: %s %s%s; stream %s; turn %d, step %d, %d resumes", s.SessionID, s.AgentType, s.Status, kind, s.StreamStatus,
		s.TurnCount, s.StepCount, s.ResumeCount)
	for _, r := range s.Runs {
		p("  run %s: %s, %s, %d steps", r.RunID, r.Mode, r.Status, r.StepCount)
	}
	for _, m := range s.Messages {
		switch {
		case m.Role == projector.RoleUser && m.Hidden():
			p("  user (hidden): %s", m.Content)
		case m.Role == projector.RoleUser:
			p("  user: %s", m.Content)
		case m.Role == projector.RoleAssistant:
			p("  assistant: %s", said(m.Parts))
		case m.Error != "":
			p("  tool %s: error %s: %s", m.ToolCallID, m.ErrorCode, m.Error)
		default:
			p("  tool %s: %s", m.ToolCallID, m.Result)
		}
	}
	if s.CustomState.String() != "{}" {
		p("  state %s", s.CustomState)
	}
	te.showTurn(p, s.Turn)
	if s.Output != nil {
		p("  output %s", s.Output)
	}
	if s.Error != nil {
		p("  failed: %s: %s", s.Error.Code, s.Error.Message)
	}
	for _, cp := range s.Checkpoints {
		p("  %s: %d messages", cp.ID, cp.MessageCount)
	}
}

// showTurn shows what is open.
func (te *teller) showTurn(p func(string, ...any), turn *projector.Turn) {
	if turn == nil {
		return
	}
	if turn.Stop != nil {
		p("  to be stopped: %s", turn.Stop.Kind)
	}
	if turn.Step == nil {
		return
	}
	for _, part := range turn.Step.Partial {
		p("  partial %s: %s", part.Kind, part.Text)
	}
	for _, c := range turn.Step.Pending() {
		line := fmt.Sprintf("  open %s: %s", c.ID, c.Name)
		if c.Pending != nil {
			line += ", waits for " + string(c.Pending.Kind)
			if c.Pending.Deadline > 0 {
				line += " until +" + te.since(c.Pending.Deadline)
			}
		}
		if c.Answer != nil {
			line += ", answered: " + string(c.Answer.Kind)
		}
		p("%s", line)
	}
}

// names stand for ids that are made up: of runs and of checkpoints.
type names struct {
	of    map[string]string // by id
	count map[string]int    // by session and kind
	seen  map[string]uint64 // head up to where a log was searched
}

func newNames() names {
	return names{of: map[string]string{}, count: map[string]int{}, seen: map[string]uint64{}}
}

// learn gives names to the ids that the session's log has got.
func (te *teller) learn() {
	n := te.names
	for r, err := range te.log.Read(te.t.Context(), te.id(), n.seen[te.session], 0) {
		if err != nil {
			return // there is no session
		}
		n.seen[te.session] = r.Sequence
		agent := strings.TrimPrefix(r.Agent, te.prefix)
		id, kind := "", ""
		if c, err := r.Chunk(); err == nil {
			if cp, ok := c.(*eventlog.CheckpointCreated); ok {
				id, kind = cp.CheckpointID, "cp"
			}
		} else if f, err := r.Fact(); err == nil {
			if run, ok := f.(*fact.RunRequested); ok {
				id, kind = run.RunID, "r"
			}
		}
		if id == "" {
			continue
		}
		n.count[agent+kind]++
		name := fmt.Sprintf("%s%d", kind, n.count[agent+kind])
		if agent != te.session {
			name = agent + ":" + name
		}
		n.of[strings.ReplaceAll(id, te.prefix, "")] = name
		n.of[te.session+"/"+name] = id
	}
}

// real returns the id of a checkpoint of the session, or the name if there is
// none.
func (n names) real(session, name string) string {
	if id := n.of[session+"/"+name]; id != "" {
		return id
	}
	return name
}

var madeUp = regexp.MustCompile(`run-\d+|cpv1-[a-zA-Z0-9_-]+-s\d+-t\d+-[0-9a-f]{6}`)

func (n names) apply(text string) string {
	return madeUp.ReplaceAllStringFunc(text, func(id string) string {
		if name := n.of[id]; name != "" {
			return name
		}
		return id
	})
}
