// Package layout names where a log on JetStream stores what: its streams, their subjects, and
// the partition of each session. It talks to no server. The names can't change: deployments
// hold them.
package layout
