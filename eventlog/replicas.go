package eventlog

// Replicas says how many of the servers that keep a replicated log are there.
type Replicas struct {
	Wanted  int      `json:"wanted"`            // servers that should keep each record
	Present int      `json:"present"`           // of the partition that lacks most
	Missing []string `json:"missing,omitempty"` // servers that do not answer, by name
}
