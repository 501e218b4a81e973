// Package operate has the commands of operators: backups, retention, verification, and
// what a daemon is asked to do.
package operate
