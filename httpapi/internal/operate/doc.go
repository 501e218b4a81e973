// Package operate serves operators: retention, backups, sweeps, health, and the rights of NATS
// clients.
package operate
