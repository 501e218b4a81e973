package api

import (
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// Readiness is the answer of GET /readyz. A caller without the operation status gets Ready
// only.
type Readiness struct {
	Ready      bool                `json:"ready"`
	Durability eventlog.Durability `json:"durability"`
	Guarantee  string              `json:"guarantee"`          // what that means, in words
	Refuses    string              `json:"refuses,omitempty"`  // why the log takes no appends now
	Draining   bool                `json:"draining,omitempty"` // the server is going to stop, and still serves
	Backend    string              `json:"backend"`
	Partitions int                 `json:"partitions"`
	Agents     []string            `json:"agents"`
	Version    string              `json:"version"`
	// Replicas are the servers that keep the log. It is nil if the log has no replicas or
	// no quorum. A missing replica does not count for Ready.
	Replicas *eventlog.Replicas `json:"replicas,omitempty"`
	// ReadModels says how far listings are after the log. A lag does not count for Ready.
	ReadModels *readmodel.Fresh `json:"readModels,omitempty"`
	// Degraded is what is not well with the node or its cluster, as of the last few seconds. It
	// does not count for Ready. A caller needs the operation status on all sessions, and no user or tenant.
	Degraded []Degradation `json:"degraded,omitempty"`
}

// Degradation is something that is not well, while the server works.
type Degradation struct {
	// Check is one of certificates, clock, disk, listings, quotas, replicas. helixd doctor has checks
	// of the same names.
	Check   string `json:"check"`
	Problem bool   `json:"problem,omitempty"` // false: it may become a problem
	Target  string `json:"target,omitempty"`  // the file, server or tenant
	Found   string `json:"found"`
	Advice  string `json:"advice"` // what to do
}

// Reloaded is what POST /admin/reload has changed.
type Reloaded struct {
	// Agents are the names of all agents now, sorted.
	Agents []string `json:"agents"`
	// NeedsRestart are keys whose new values take effect only at the next start.
	NeedsRestart []string `json:"needsRestart"`
}

// Retained is the answer of POST /retention: what was removed.
type Retained struct {
	Purged []eventlog.Purged `json:"purged"`
	// Dropped has, for each session that lost segments, where its history begins now.
	Dropped map[string]uint64 `json:"dropped"`
	// Bytes is the size of the log and its segments now.
	Bytes uint64 `json:"bytes"`
}

// Swept is the answer of POST /sweep.
type Swept struct {
	Detected         int `json:"detected"`         // sessions that have expired
	Marked           int `json:"marked"`           // that have failed now, with session_expired
	AlreadyTerminal  int `json:"alreadyTerminal"`  // that had ended before
	SnapshotsDeleted int `json:"snapshotsDeleted"` // of workspaces
	Errors           int `json:"errors"`           // sessions that could not be swept; the server's log says more
	Running          int `json:"running"`          // that are left alone, since something of them runs
}

// Ticket is the right to open one session's stream by the query parameter ticket, for
// browsers' EventSource, which can't send a header. It is the answer of POST
// /sessions/{id}/tickets and /chat/{id}/tickets. Its stream lasts as long as a stream of
// the caller's token would.
type Ticket struct {
	Ticket    string    `json:"ticket"` // secret
	ExpiresAt time.Time `json:"expiresAt"`
}

// Subscription is the right of a NATS client to receive one session's records as they are
// stored, and nothing else. It is the answer of POST /sessions/{id}/subscriptions.
type Subscription struct {
	Subject string           `json:"subject"` // the only one that it may subscribe to
	URLs    SubscriptionURLs `json:"urls"`
	JWT     string           `json:"jwt"`
	Seed    string           `json:"seed"`  // secret: it signs the server's challenge to the owner of the JWT
	Creds   string           `json:"creds"` // JWT and Seed, as the text of a .creds file
	// ExpiresAt is when connections end and no others are taken.
	ExpiresAt time.Time `json:"expiresAt"`
}

// SubscriptionURLs are where NATS clients connect, as far as it is known.
type SubscriptionURLs struct {
	NATS      []string `json:"nats"`
	WebSocket []string `json:"websocket"`
}

// Unsubscribed is the answer of DELETE /sessions/{id}/subscriptions.
type Unsubscribed struct {
	SessionID string `json:"sessionId"`
	Revoked   bool   `json:"revoked"` // true: no right that was made before holds any more
}
