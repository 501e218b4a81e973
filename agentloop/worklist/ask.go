package worklist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Messages between nodes, by core NATS.
const (
	allSubject    = "helix.node.all"    // word
	wakeSubject   = "helix.node.wake"   // wake
	askSubjects   = "helix.node.ask."   // + node: question -> answer
	agentSubjects = "helix.node.agent." // + agent type: -> its initial state
)

const (
	// askTimeout is how long a node has to answer. One that lives takes a
	// fraction of a millisecond.
	askTimeout = 300 * time.Millisecond
	// maxAsked is how many sessions are in one question.
	maxAsked = 500
)

// question asks a node which of the sessions it holds. With a ticket, one that
// holds them looks at their logs again and answers for the ticket.
type question struct {
	Sessions []string `json:"sessions"`
	Ticket   uint64   `json:"ticket,omitempty"`
}

type answer struct {
	Held []string `json:"held"`
}

// wake asks for a node to take a tree up.
type wake struct {
	Node      string `json:"node,omitempty"` // empty: whose share it is
	AgentType string `json:"agentType"`
	Session   string `json:"session"`
}

// listen takes what other nodes say.
func (l *Worklist) listen() error {
	on := func(subject string, do nats.MsgHandler) error {
		sub, err := l.nc.Subscribe(subject, do)
		if err != nil {
			return fmt.Errorf("worklist: %w", err)
		}
		l.subs = append(l.subs, sub)
		return nil
	}
	return errors.Join(
		on(allSubject, l.hear), on(wakeSubject, l.hearWake), on(askSubjects+layout.Token(l.opts.Node), l.reply), l.host(),
	)
}

func (l *Worklist) reply(m *nats.Msg) {
	var asked question
	if json.Unmarshal(m.Data, &asked) != nil {
		return
	}
	a := answer{Held: []string{}}
	for _, s := range asked.Sessions {
		if l.loop.Holds(s, asked.Ticket) {
			a.Held = append(a.Held, s)
		}
	}
	text, _ := json.Marshal(a)
	respond(m, text)
}

// respond answers; who asked may be gone.
func respond(m *nats.Msg, text []byte) { _ = m.Respond(text) }

func (l *Worklist) ask(ctx context.Context, node string, what question) (a answer, err error) {
	text, err := json.Marshal(what)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	m, err := l.nc.RequestWithContext(ctx, askSubjects+layout.Token(node), text)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(m.Data, &a)
}

// Holds implements agentloop.Worklist.
func (l *Worklist) Holds(ctx context.Context, node, session string, ticket uint64) bool {
	a, err := l.ask(ctx, node, question{Sessions: []string{session}, Ticket: ticket})
	if err != nil {
		return l.lives(node)
	}
	return len(a.Held) > 0
}

// Wake implements agentloop.Worklist.
func (l *Worklist) Wake(node, agentType, session string) {
	t, now := tree{agentType, session}, time.Now()
	l.mu.Lock()
	l.wakened[t] = wakened{first: now, last: now} // that node may die, leave or start again: see overdue
	l.mu.Unlock()
	l.publishWake(node, t)
}

func (l *Worklist) publishWake(node string, t tree) {
	text, _ := json.Marshal(wake{Node: node, AgentType: t.agentType, Session: t.session})
	if err := l.nc.Publish(wakeSubject, text); err != nil && !l.nc.IsClosed() {
		l.opts.Logger.Warn("can't wake other nodes", eventlog.LogSession, t.session, "error", err)
	}
}

func (l *Worklist) hearWake(m *nats.Msg) {
	var w wake
	if json.Unmarshal(m.Data, &w) != nil || w.Node != "" && w.Node != l.opts.Node {
		return
	}
	select {
	case l.woke <- woken{tree{w.AgentType, w.Session}, w.Node != ""}:
	default:
		l.lookSoon() // too many to be named
	}
}

// Agent implements agentloop.Worklist.
func (l *Worklist) Agent(ctx context.Context, agentType string) (initial json.RawMessage, hosted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	m, err := l.nc.RequestWithContext(ctx, agentSubjects+layout.Token(agentType), nil)
	switch {
	case err == nil && len(m.Data) == 0:
		return nil, true, nil
	case err == nil:
		return m.Data, true, nil
	case errors.Is(err, nats.ErrNoResponders) && !l.Hosted(agentType):
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("worklist: ask for agent %q: %w: %w", agentType, eventlog.ErrUnavailable, err)
}
