// Package control changes sessions: runs begin and stop, calls that wait get their answers,
// outside producers append, sessions are forked, imported and erased. What agents
// remember is changed here, too.
package control
