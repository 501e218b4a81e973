package eventlog

// Replicas says how many of the servers that keep a replicated log are there.
type Replicas struct {
	Wanted  int      `json:"wanted"`            // servers that should keep each record
	Present int      `json:"present"`           // of the partition that lacks most
	Missing []string `json:"missing,omitempty"` // servers that do not answer, by name
	// Lag is how many operations the server lacks that is furthest behind of those present.
	Lag uint64 `json:"lag,omitempty"`
	// Skew is how far the clock of a server that leads a partition differs from this machine's,
	// at least, in milliseconds: of the server that differs most.
	Skew int64 `json:"skewMs,omitempty"`
}
