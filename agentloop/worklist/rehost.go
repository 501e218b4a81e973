package worklist

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
func (l *Worklist) Rehost() error {
	if err := l.host(); err != nil {
		return err
	}
	l.publish(stateHere)
	l.lookSoon()
	return nil
}

// host answers for the loop's agents, and for no others any more.
func (l *Worklist) host() error {
	agents := l.loop.AgentTypes()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving || l.gone {
		return nil
	}
	var errs []error
	for agent, sub := range l.hosting {
		if !slices.Contains(agents, agent) {
			errs = append(errs, sub.Unsubscribe())
			delete(l.hosting, agent)
		}
	}
	for _, agent := range agents {
		if l.hosting[agent] != nil {
			continue
		}
		sub, err := l.nc.QueueSubscribe(agentSubjects+layout.Token(agent), "hosts", func(m *nats.Msg) {
			initial, _ := l.loop.InitialState(agent)
			respond(m, initial)
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.hosting[agent] = sub
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("worklist: %w", err)
	}
	return nil
}

// unhost has other nodes answer for the agents.
func (l *Worklist) unhost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for agent, sub := range l.hosting {
		_ = sub.Unsubscribe() // fails only on a closed connection
		delete(l.hosting, agent)
	}
}
