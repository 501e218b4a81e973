// Package daemon is helixd serve: it starts, reloads and stops everything that the configuration
// names.
package daemon
