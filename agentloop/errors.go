package agentloop

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that callers branch on.
var (
	// ErrUnknownAgent: no agent has the type; an *UnknownAgentError names it and those that
	// there are.
	ErrUnknownAgent = errors.New("agentloop: unknown agent type")
	// ErrAlreadyRunning: the session has a live run, or one that /resume
	// continues.
	ErrAlreadyRunning = errors.New("agentloop: session is running")
	// ErrOtherAgent: the session has another agent than the request names, and
	// no run.
	ErrOtherAgent = errors.New("agentloop: the session has another agent")
	// ErrOtherUser: the session has another user than the request names.
	ErrOtherUser = errors.New("agentloop: the session has another user")
	// ErrUseResume: the session's run was interrupted or waits; it is
	// resumed, not started.
	ErrUseResume = errors.New("agentloop: session can be resumed")
	// ErrAlreadyCompleted: the session has completed or failed.
	ErrAlreadyCompleted = errors.New("agentloop: session is finished")
	// ErrMessageKnown: the session has this message, by its MessageID and text.
	ErrMessageKnown = errors.New("agentloop: the session has this message")
	// ErrKeyUsed: the session has another message under the request's key.
	ErrKeyUsed = errors.New("agentloop: the key was used for another message")
	// ErrNothingToResume: the session has never run.
	ErrNothingToResume = errors.New("agentloop: session has no run")
	// ErrNothingToConfirm: no approval is open.
	ErrNothingToConfirm = errors.New("agentloop: no approval is open")
	// ErrCheckpointNotFound: the session has no such checkpoint.
	ErrCheckpointNotFound = errors.New("agentloop: checkpoint not found")
	// ErrCallNotFound: no call of the session waits or has waited for a
	// submission under the id.
	ErrCallNotFound = errors.New("agentloop: tool call not found")
	// ErrNotLast: the session has another run since the one that the request continues.
	ErrNotLast = errors.New("agentloop: the session has gone on since that run")
	// ErrSessionExists: a session has the id already.
	ErrSessionExists = errors.New("agentloop: session exists")
	// ErrWorkspaceRemains: files of a session's workspaces can't be removed.
	ErrWorkspaceRemains = errors.New("agentloop: files of the session's workspaces can't be removed")
	// ErrWorkspaceTimeout: the provider of the session's workspace did not answer in time.
	ErrWorkspaceTimeout = errors.New("agentloop: the session's workspace did not answer in time")
	// ErrStopping: the loop is being stopped.
	ErrStopping = errors.New("agentloop: stopping")
)

// UnknownAgentError is the ErrUnknownAgent of a request.
type UnknownAgentError struct {
	AgentType string
	Known     []string // the types that this node runs, sorted
}

func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("%v %q; %s", ErrUnknownAgent, e.AgentType, e.Advice())
}

// Is makes the error an ErrUnknownAgent.
func (e *UnknownAgentError) Is(target error) bool { return target == ErrUnknownAgent }

// Advice lists the agents that there are, the first twenty of many.
func (e *UnknownAgentError) Advice() string {
	const most = 20
	switch n := len(e.Known); {
	case n == 0:
		return "this node runs no agents"
	case n > most:
		return fmt.Sprintf("known are %s and %d more", strings.Join(e.Known[:most], ", "), n-most)
	}
	return "known are " + strings.Join(e.Known, ", ")
}

// AgentError is one fault of an agent's definition.
type AgentError struct {
	Agent string
	// Path is where the fault is, as a configuration file names it, such as
	// tools.look.inputSchema or subAgents[1]; empty: the agent itself.
	Path    string
	Problem string
	Cause   error // for errors.Is; may be nil
}

func (e *AgentError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("agentloop: agent %q: %s", e.Agent, e.Problem)
	}
	return fmt.Sprintf("agentloop: agent %q: %s: %s", e.Agent, e.Path, e.Problem)
}

func (e *AgentError) Unwrap() error { return e.Cause }
