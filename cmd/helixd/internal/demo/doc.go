// Package demo has the agents and the session that helixd dev starts with.
package demo
