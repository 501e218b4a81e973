// Package layout has the names with which a log on JetStream stores everything: its
// streams, their subjects, and the partition of each session. It talks to no server. The
// names can't change, since existing deployments use them.
package layout
