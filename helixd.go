// Package helixd opens a whole helixd in one process: a NATS server on a folder, the log in
// it, and the loop that runs agents. It is the usual case in one call; the packages that it
// puts together are there for every other one:
//
//	embed                NATS in this process
//	eventlog/jetstream   the log on NATS
//	agentloop            what agents are made of; agentloop/model has models
//	agentloop/engine     the loop that runs them
//	httpapi              the HTTP routes, on any mux
package helixd

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// Node is a helixd in this process. Close it.
type Node struct {
	// Loop takes every request: resume, submit, interrupt, fork and so on.
	Loop *engine.Loop
	// Log has the sessions. Each acknowledged append is on the disk.
	Log *jetstream.Log
	// Server is the NATS server that the log is in.
	Server *embed.Server

	closers []func()
}

// Open opens the helixd in a folder, which it creates if there is none, with the agents that
// it runs. Runs that were under way when the last process ended continue by themselves.
//
// One process at a time can have a folder open. ctx bounds the opening alone. Errors: a
// faulty agent is an *agentloop.AgentError; else what [embed.Start], [jetstream.Open] and
// [worklist.Open] return.
func Open(ctx context.Context, dataDir string, agents ...agentloop.Agent) (*Node, error) {
	n := &Node{}
	if err := n.open(ctx, dataDir, agents); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Node) open(ctx context.Context, dataDir string, agents []agentloop.Agent) (err error) {
	if n.Server, err = embed.Start(ctx, embed.Options{DataDir: dataDir, GroupSync: true}); err != nil {
		return err
	}
	n.onClose(n.Server.Stop)
	forLog, err := n.Server.Connect()
	if err != nil {
		return fmt.Errorf("helixd: %w", err)
	}
	n.onClose(forLog.Close)
	n.Log, err = jetstream.Open(ctx, forLog, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: n.Server})
	if err != nil {
		return err
	}
	n.onClose(func() { n.Log.Close() })
	forRuns, err := n.Server.Connect() // so that the list of runs does not wait for the log's traffic
	if err != nil {
		return fmt.Errorf("helixd: %w", err)
	}
	n.onClose(forRuns.Close)
	name := "node-" + ulid.Make().String()
	runs, err := worklist.Open(ctx, forRuns, worklist.Options{Node: name})
	if err != nil {
		return err
	}
	n.onClose(runs.Close)
	if n.Loop, err = engine.New(n.Log, agents, &engine.Options{Node: name, Worklist: runs}); err != nil {
		return err
	}
	n.onClose(n.Loop.Stop)
	n.onClose(runs.Leave)
	return runs.Serve(n.Loop)
}

func (n *Node) onClose(f func()) { n.closers = append(n.closers, f) }

// Close stops the node: runs that are under way continue when the folder is opened again.
// Calls that are in progress fail.
func (n *Node) Close() {
	for i := len(n.closers) - 1; i >= 0; i-- {
		n.closers[i]()
	}
	n.closers = nil
}

// Say sends a message to a session, which it creates if there is none with the agent, and
// returns the run that answers. Each further message begins the session's next turn, which
// sees the whole conversation. When it returns, the message is durable.
//
// Errors: as [engine.Loop.Execute].
func (n *Node) Say(ctx context.Context, agent, session, message string) (*engine.Handle, error) {
	return n.Loop.Execute(ctx, engine.StartRequest{
		SessionID: session, AgentType: agent, Messages: []agentloop.Input{{Content: message}},
	})
}
