// Package workspace gives agents files and commands: what a provider of
// workspaces has to do, and the tools by which a model uses one.
//
// A session's workspace is opened by the first call that needs it, and found
// again by its ref after a restart or on another node. When a step that has
// used it is committed, a snapshot is taken, and the checkpoint has it: a
// rollback makes the files those of the snapshot again, and a fork begins with
// a copy of them. What a step has changed and not committed stays: the next
// node continues with it.
//
// Package agentloop/engine owns the lifecycle; the providers are the packages below this one.
package workspace
