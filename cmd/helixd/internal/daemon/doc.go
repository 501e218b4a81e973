// Package daemon is helixd serve: everything that the configuration names is started,
// reloaded and stopped.
package daemon
