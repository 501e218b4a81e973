package queue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Rehost announces the loop's agents to the other nodes, and looks for
// trees of new agents. A node that leaves has already announced that it hosts
// none.
func (q *Queue) Rehost() error {
	if err := q.host(); err != nil {
		return err
	}
	q.say(stateHere)
	q.lookSoon()
	return nil
}

// host answers for the loop's agents, and for no others any more.
func (q *Queue) host() error {
	agents := q.loop.AgentTypes()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leaving || q.gone {
		return nil
	}
	var errs []error
	for agent, sub := range q.hosting {
		if !slices.Contains(agents, agent) {
			errs = append(errs, sub.Unsubscribe())
			delete(q.hosting, agent)
		}
	}
	for _, agent := range agents {
		if q.hosting[agent] != nil {
			continue
		}
		sub, err := q.nc.QueueSubscribe(agentSubjects+layout.Token(agent), "hosts", func(m *nats.Msg) {
			initial, _ := q.loop.InitialState(agent)
			respond(m, initial)
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		q.hosting[agent] = sub
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return nil
}

// unhost has other nodes answer for the agents.
func (q *Queue) unhost() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for agent, sub := range q.hosting {
		_ = sub.Unsubscribe() // fails only on a closed connection
		delete(q.hosting, agent)
	}
}
