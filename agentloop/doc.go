// Package agentloop has the types that agents are made of: their definitions, tools, hooks,
// recallers and workspaces, and what a tool call or a hook may do. It runs nothing: package engine
// does.
//
//	agentloop          Agent, Tool, Call, Hooks, errors and codes: what users define and get
//	internal/plan      agents compiled: schemas, names and links are checked
//	internal/decide    pure: what must happen next in a session tree
//	verify             asks today's code for recorded decisions
//	engine             takes requests, claims trees, performs what is decided
//
// Each imports only those above it. Packages that provide parts of agents, such as
// httptool, mcptool and memory, import this package and no engine.
//
// # Memory
//
// An agent with a [Recaller] is reminded at the beginning of each turn: what it
// remembers is a record too, and a hidden message of the conversation. A turn
// that is resumed, taken over or replayed has what was recorded, and a recaller
// that fails or hangs leaves the turn without.
//
// # Sub-agents
//
// A sub-agent is a separate session in its parent's tree: same log, same order, same
// claim, isolated conversation and state. An ephemeral one lives
// for a call. A persistent one is talked to with companion tools until it is
// terminated, which is final, and a non-blocking one may outlive its parent's
// turn; the parent receives a hidden message before its next model call. Each
// turn of a sub-agent begins with a subagent_start and ends with a subagent_end
// in its parent's stream, once each: with the result of the call that began it,
// if that waits, otherwise with the end of its run. A remote one runs on another
// server: its stream is copied into the parent's log with its position.
//
// # Hooks
//
// Hooks are called after records were appended, outside of all locks and of the
// log's path, in the order that [Hooks] states. A hook that fails or hangs
// is logged and left alone.
package agentloop
