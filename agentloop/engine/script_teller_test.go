package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// patience is how long a story may wait for something.
const patience = 2 * time.Minute

// epoch is when every story begins.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// teller performs the commands of a script.
type teller struct {
	t      *testing.T
	log    eventlog.Log
	stage  *stage
	agents []agentloop.Agent
	prefix string // of session ids, so that stories can share a log

	loop, other *engine.Loop // other is a second process
	processes   int
	ids         atomic.Int64
	clock       atomic.Int64 // ms since the epoch of stories

	session string // that commands are about, without the prefix
	names   names
	printed map[string]uint64 // up to where records were shown, by session
	stops   map[shown]bool    // stops that were shown
	awaited map[string]uint64 // up to where records were waited for, by what was waited for

	decisions int // that were verified
}

func newTeller(t *testing.T, name string, log eventlog.Log) *teller {
	te := &teller{
		t: t, log: log, prefix: name + "~", session: "s", names: newNames(),
		printed: map[string]uint64{}, awaited: map[string]uint64{}, stops: map[shown]bool{},
		stage: &stage{gates: map[string]chan struct{}{}, attempts: map[string]int{}, executed: map[string]int{}, shelf: newShelf()},
	}
	t.Cleanup(func() {
		for _, l := range []*engine.Loop{te.loop, te.other} {
			if l != nil {
				l.Stop()
			}
		}
	})
	return te
}

func (te *teller) define(raw []byte) {
	var agents []scriptAgent
	require.NoError(te.t, yaml.UnmarshalWithOptions(raw, &agents, yaml.Strict()))
	for _, a := range agents {
		agent, err := te.stage.agent(a)
		require.NoError(te.t, err)
		te.agents = append(te.agents, agent)
	}
	te.loop = te.process()
}

// process makes a loop as a new process would.
func (te *teller) process() *engine.Loop {
	te.processes++
	loop, err := engine.New(te.log, te.agents, &engine.Options{
		Node: fmt.Sprintf("node%d", te.processes), RetryDelay: time.Millisecond,
		Workspaces: []workspace.Provider{te.stage.shelf},
		NewID:      func() string { return fmt.Sprintf("%s%d", te.prefix, te.ids.Add(1)) },
		Now:        func() time.Time { return epoch.Add(time.Duration(te.clock.Load()) * time.Millisecond) },
	})
	require.NoError(te.t, err)
	return loop
}

func (te *teller) id() string { return te.prefix + te.session }

// tell performs commands and returns what they say.
func (te *teller) tell(commands string) string {
	var out strings.Builder
	for line := range strings.Lines(commands) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fmt.Fprintf(&out, "> %s\n", line)
		said, err := te.do(te.loop, line)
		te.learn()
		if err != nil {
			said = "error: " + err.Error()
		}
		said = te.names.apply(strings.ReplaceAll(said, te.prefix, ""))
		for s := range strings.Lines(said) {
			out.WriteString("  " + strings.TrimRight(s, "\n") + "\n")
		}
	}
	return out.String()
}

// do performs one command.
func (te *teller) do(loop *engine.Loop, line string) (string, error) {
	ctx, cancel := context.WithTimeout(te.t.Context(), patience)
	defer cancel()
	name, rest, _ := strings.Cut(line, " ")
	command, ok := te.commands()[name]
	require.True(te.t, ok, "command %q", line)
	return command(ctx, loop, rest)
}

type command = func(ctx context.Context, loop *engine.Loop, rest string) (string, error)

// commands are what a script may say. Sessions are named without the prefix.
func (te *teller) commands() map[string]command {
	return map[string]command{
		"start":       te.start,   // AGENT MESSAGE
		"execute":     te.execute, // AGENT MESSAGE
		"branch":      te.branch,  // NEW cpN|message N AGENT MESSAGE
		"resume":      te.resume,  // [approve|deny|cpN|retry [TURN]] [with MESSAGE]
		"submit":      te.submit,  // CALL result JSON | error TEXT | approve [REASON] | deny [REASON] | approve-as ID
		"interrupt":   te.interrupt,
		"abort":       te.abort,
		"rollback":    te.rollback,  // cpN | TYPE[#N]
		"fork":        te.fork,      // NEW [cpN | message N | TYPE[#N]]
		"canresume":   te.canResume, // [MODE]
		"stale":       te.stale,     // rN: somebody's wish to interrupt that run comes late
		"result":      te.result,
		"records":     te.records, // [lanes]
		"state":       te.state,
		"wait":        te.wait, // [for TYPE [TEXT] | until SESSION STATUS]
		"executed":    te.executions,
		"files":       te.files, // [SESSION]: of its workspace
		"checkpoints": te.checkpoints,
		"use": func(_ context.Context, _ *engine.Loop, session string) (string, error) {
			te.session = session
			return "", nil
		},
		"erase": func(ctx context.Context, _ *engine.Loop, session string) (string, error) {
			_, err := te.loop.Admin.Erase(ctx, te.prefix+session)
			return "", err
		},
		"release": func(_ context.Context, _ *engine.Loop, name string) (string, error) {
			close(te.stage.gate(name))
			return "", nil
		},
		"clock": func(_ context.Context, _ *engine.Loop, d string) (string, error) {
			by, err := time.ParseDuration(d)
			te.clock.Add(by.Milliseconds())
			return "", err
		},
		"restart": func(context.Context, *engine.Loop, string) (string, error) {
			te.loop.Stop()
			te.loop = te.process()
			return "", nil
		},
		"elsewhere": func(_ context.Context, _ *engine.Loop, line string) (string, error) {
			if te.other == nil {
				te.other = te.process()
			}
			return te.do(te.other, line)
		},
	}
}

func (te *teller) start(ctx context.Context, loop *engine.Loop, rest string) (string, error) {
	agent, message, _ := strings.Cut(rest, " ")
	s, err := loop.Start(ctx, engine.StartRequest{
		SessionID: te.id(), AgentType: agent, Messages: []agentloop.Input{{Content: message}},
	})
	return s.RunID, err
}

func (te *teller) execute(ctx context.Context, loop *engine.Loop, rest string) (string, error) {
	agent, message, _ := strings.Cut(rest, " ")
	return runOf(loop.Execute(ctx, engine.StartRequest{
		SessionID: te.id(), AgentType: agent, Messages: []agentloop.Input{{Content: message}},
	}))
}

func runOf(h *engine.Handle, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return h.RunID, nil
}

func (te *teller) branch(ctx context.Context, loop *engine.Loop, rest string) (string, error) {
	session, rest, _ := strings.Cut(rest, " ")
	from := te.forkRequest(ctx, &rest)
	agent, message, _ := strings.Cut(rest, " ")
	te.session = session
	return runOf(loop.Execute(ctx, engine.StartRequest{
		SessionID: te.id(), AgentType: agent, Messages: []agentloop.Input{{Content: message}}, Branch: &from,
	}))
}

// forkRequest reads where to fork and cuts it off.
func (te *teller) forkRequest(ctx context.Context, rest *string) timetravel.ForkRequest {
	req := timetravel.ForkRequest{FromSessionID: te.id()}
	word, after, _ := strings.Cut(*rest, " ")
	switch {
	case word == "":
	case word == "message":
		word, after, _ = strings.Cut(after, " ")
		n := te.number(word)
		req.MessageIndex = &n
	default:
		req.At = te.target(ctx, word)
	}
	*rest = after
	return req
}

// target reads a checkpoint's name, or TYPE#N: the N-th record of a type.
func (te *teller) target(ctx context.Context, word string) timetravel.Target {
	if strings.HasPrefix(word, "cp") {
		return timetravel.Target{CheckpointID: te.names.real(te.session, word)}
	}
	typ, nth, found := strings.Cut(word, "#")
	n := 1
	if found {
		n = te.number(nth)
	}
	for r, err := range te.log.Read(ctx, te.id(), 0, 0) {
		require.NoError(te.t, err)
		if r.Type == typ {
			if n--; n == 0 {
				return timetravel.Target{Sequence: r.Sequence}
			}
		}
	}
	te.t.Fatalf("there is no record %s", word)
	return timetravel.Target{}
}

func (te *teller) number(s string) int {
	n, err := strconv.Atoi(s)
	require.NoError(te.t, err)
	return n
}

func (te *teller) resume(ctx context.Context, loop *engine.Loop, rest string) (string, error) {
	req := engine.ResumeRequest{SessionID: te.id()}
	how, message, with := strings.Cut(" "+rest, " with ")
	if with {
		req.Messages = []agentloop.Input{{Content: message}}
	}
	switch words := strings.Fields(how); {
	case len(words) == 0:
	case words[0] == "approve", words[0] == "deny":
		req.Mode, req.Approved = fact.ModeWithConfirmation, words[0] == "approve"
	case words[0] == "retry":
		req.Mode = fact.ModeRetry
		if len(words) > 1 {
			req.Turn = te.number(words[1])
		}
	case strings.HasPrefix(words[0], "cp"):
		req.Mode, req.CheckpointID = fact.ModeFromCheckpoint, te.names.real(te.session, words[0])
	default:
		req.Mode = fact.RunMode(words[0])
	}
	s, err := loop.Resume(ctx, req)
	return s.RunID, err
}

func (te *teller) submit(ctx context.Context, loop *engine.Loop, rest string) (string, error) {
	id, rest, _ := strings.Cut(rest, " ")
	what, text, _ := strings.Cut(rest, " ")
	sub := engine.Submission{SessionID: te.id(), ToolCallID: id, Kind: fact.SubmitClientResult}
	switch what {
	case "result":
		sub.Result = json.RawMessage(text)
	case "error":
		sub.Error = text
	case "approve", "deny":
		sub.Kind, sub.Approved, sub.Reason = fact.SubmitApproval, what == "approve", text
	case "approve-as":
		sub.Kind, sub.Approved, sub.ApprovalID = fact.SubmitApproval, true, text
	default:
		sub.Kind = fact.SubmissionKind(what)
	}
	s, err := loop.Submit(ctx, sub)
	if err != nil {
		return "", err
	}
	said := string(s.Status)
	if s.Reason != "" {
		said += " " + s.Reason
	}
	return fmt.Sprintf("%s, open: %v", said, s.PendingToolCallIDs), nil
}

func (te *teller) interrupt(ctx context.Context, loop *engine.Loop, reason string) (string, error) {
	return "", loop.Interrupt(ctx, te.id(), reason)
}

func (te *teller) abort(ctx context.Context, loop *engine.Loop, reason string) (string, error) {
	return "", loop.Abort(ctx, te.id(), reason)
}

func (te *teller) stale(ctx context.Context, _ *engine.Loop, run string) (string, error) {
	e, err := eventlog.NewFact(te.id(), &fact.InterruptRequested{
		RunID: te.names.real(te.session, run), Kind: fact.StopInterrupt,
		Base: fact.Base{SessionID: te.id(), Timestamp: epoch.UnixMilli()},
	}, eventlog.Labels{})
	require.NoError(te.t, err)
	head, err := te.log.Head(ctx, te.id())
	require.NoError(te.t, err)
	_, err = eventlog.AppendOnce(ctx, te.log, te.id(), te.prefix+"stale", head, []eventlog.Entry{e})
	return "", err
}

func (te *teller) rollback(ctx context.Context, loop *engine.Loop, rest string) (string, error) {
	marker, err := loop.TimeTravel.Rollback(ctx, te.id(), te.target(ctx, rest))
	if err == nil && marker == nil {
		return "nothing to take back", nil
	}
	return "", err
}

func (te *teller) fork(ctx context.Context, loop *engine.Loop, rest string) (string, error) {
	session, rest, _ := strings.Cut(rest, " ")
	req := te.forkRequest(ctx, &rest)
	req.NewSessionID = te.prefix + session
	f, err := loop.TimeTravel.Fork(ctx, req)
	if err != nil {
		return "", err
	}
	te.session = session
	return fmt.Sprintf("%s from %s", f.SessionID, f.FromSessionID), nil
}

func (te *teller) canResume(ctx context.Context, loop *engine.Loop, mode string) (string, error) {
	c, err := loop.CanResume(ctx, te.id(), fact.RunMode(mode))
	if err != nil || c.CanResume {
		return "yes", err
	}
	return "no: " + c.Reason, nil
}

func (te *teller) result(ctx context.Context, loop *engine.Loop, _ string) (string, error) {
	h, err := loop.Handle(ctx, te.id())
	if err != nil {
		return "", err
	}
	r, err := h.Result(ctx)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(r)
	return string(raw), err
}

func (te *teller) checkpoints(ctx context.Context, loop *engine.Loop, _ string) (string, error) {
	all, total, err := loop.TimeTravel.Checkpoints(ctx, te.id(), 50, 0)
	said := fmt.Sprintf("%d in all\n", total)
	for _, cp := range all {
		said += fmt.Sprintf("%s of %s: step %d, %d messages, %s\n", cp.ID, cp.RunID, cp.StepCount, cp.MessageCount, cp.Status)
	}
	return said, err
}

func (te *teller) files(_ context.Context, _ *engine.Loop, session string) (string, error) {
	id := te.id()
	if session != "" {
		id = te.prefix + session
	}
	return te.stage.shelf.files(workspace.Session{Root: te.id(), ID: id}), nil
}

func (te *teller) executions(context.Context, *engine.Loop, string) (string, error) {
	te.stage.mu.Lock()
	defer te.stage.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(te.stage.executed)) {
		all = append(all, fmt.Sprintf("%s %dx", name, te.stage.executed[name]))
	}
	return strings.Join(all, ", "), nil
}

// wait waits until nothing of the session's tree runs, for a record of a type
// that was not waited for in these words before and holds a text, or until a session of the
// tree has a status.
func (te *teller) wait(ctx context.Context, _ *engine.Loop, rest string) (string, error) {
	words := strings.Fields(rest)
	if len(words) == 0 {
		return "", te.rest(ctx)
	}
	now, err := te.log.Head(ctx, te.id())
	require.NoError(te.t, err)
	tree := new(projector.Tree)
	for r, err := range te.log.Follow(ctx, te.id(), 0) {
		if err != nil {
			break
		}
		projector.Apply(tree, r)
		switch words[0] {
		case "for":
			text := strings.Join(words[2:], " ")
			seen := te.session + " " + rest
			if r.Type == words[1] && r.Sequence > te.awaited[seen] && strings.Contains(string(r.Payload), text) {
				te.awaited[seen] = r.Sequence
				return "", nil
			}
		case "until":
			s := tree.Get(te.prefix + words[1])
			if s != nil && string(s.Status) == words[2] && !s.Running() && r.Sequence >= now {
				return "", nil
			}
		}
	}
	head, _ := te.records(te.t.Context(), te.loop, "")
	te.t.Fatalf("%s: waited in vain for %s; the log continues with\n%s", te.id(), rest, head)
	return "", nil
}

// rest waits until no process drives the tree and nothing of it runs.
func (te *teller) rest(ctx context.Context) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		live := te.loop.Live(te.id()) || te.other != nil && te.other.Live(te.id())
		if !live {
			tree := te.fold(te.id())
			if !slices.ContainsFunc(tree.Sessions(), (*projector.Session).Running) {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			head, _ := te.records(te.t.Context(), te.loop, "")
			te.t.Fatalf("%s does not become idle (driven: %v); the log continues with\n%s", te.id(), live, head)
		}
	}
}

func (te *teller) fold(session string) *projector.Tree {
	tree := new(projector.Tree)
	for r, err := range te.log.Read(te.t.Context(), session, 0, 0) {
		require.NoError(te.t, err)
		projector.Apply(tree, r)
	}
	return tree
}
