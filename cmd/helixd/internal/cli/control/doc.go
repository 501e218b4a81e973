// Package control has the commands that change sessions and memories.
package control
