// Package control changes sessions: runs begin and stop, calls are answered, outside producers append,
// sessions are forked, imported and erased. The memories of agents are here, too.
package control
