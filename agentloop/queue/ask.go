package queue

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
	AgentType string `json:"agentType"`
	Session   string `json:"session"`
}

// listen takes what other nodes say.
func (q *Queue) listen() error {
	on := func(subject string, do nats.MsgHandler) error {
		sub, err := q.nc.Subscribe(subject, do)
		if err != nil {
			return fmt.Errorf("queue: %w", err)
		}
		q.subs = append(q.subs, sub)
		return nil
	}
	return errors.Join(
		on(allSubject, q.hear), on(wakeSubject, q.hearWake), on(askSubjects+layout.Token(q.opts.Node), q.reply), q.host(),
	)
}

func (q *Queue) reply(m *nats.Msg) {
	var asked question
	if json.Unmarshal(m.Data, &asked) != nil {
		return
	}
	a := answer{Held: []string{}}
	for _, s := range asked.Sessions {
		if q.loop.Holds(s, asked.Ticket) {
			a.Held = append(a.Held, s)
		}
	}
	text, _ := json.Marshal(a)
	respond(m, text)
}

// respond answers; who asked may be gone.
func respond(m *nats.Msg, text []byte) { _ = m.Respond(text) }

func (q *Queue) ask(ctx context.Context, node string, what question) (a answer, err error) {
	text, err := json.Marshal(what)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	m, err := q.nc.RequestWithContext(ctx, askSubjects+layout.Token(node), text)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(m.Data, &a)
}

// Holds implements agentloop.Queue.
func (q *Queue) Holds(ctx context.Context, node, session string, ticket uint64) bool {
	a, err := q.ask(ctx, node, question{Sessions: []string{session}, Ticket: ticket})
	if err != nil {
		return q.lives(node)
	}
	return len(a.Held) > 0
}

// Wake implements agentloop.Queue.
func (q *Queue) Wake(agentType, session string) {
	text, _ := json.Marshal(wake{AgentType: agentType, Session: session})
	if err := q.nc.Publish(wakeSubject, text); err != nil && !q.nc.IsClosed() {
		q.opts.Logger.Warn("can't wake other nodes", eventlog.LogSession, session, "error", err)
	}
}

func (q *Queue) hearWake(m *nats.Msg) {
	var w wake
	if json.Unmarshal(m.Data, &w) != nil {
		return
	}
	select {
	case q.woke <- tree{w.AgentType, w.Session}:
	default:
		q.lookSoon() // too many to be named
	}
}

// Agent implements agentloop.Queue.
func (q *Queue) Agent(ctx context.Context, agentType string) (initial json.RawMessage, hosted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	m, err := q.nc.RequestWithContext(ctx, agentSubjects+layout.Token(agentType), nil)
	switch {
	case err == nil && len(m.Data) == 0:
		return nil, true, nil
	case err == nil:
		return m.Data, true, nil
	case errors.Is(err, nats.ErrNoResponders) && !q.Hosted(agentType):
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("queue: ask for agent %q: %w: %w", agentType, eventlog.ErrUnavailable, err)
}
