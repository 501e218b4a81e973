package readmodel

// TenantUse is a tenant's usage, as far as the rows have it.
type TenantUse struct {
	Sessions int                // root sessions
	Runs     int                // runs of root sessions that continue
	Bytes    int64              // payloads of all records of its sessions
	Trees    map[string]TreeUse // by root: the requested roots that the rows have
}

// TreeUse is what the rows have of one tree.
type TreeUse struct {
	Head    uint64 // sequence up to which the rows include it
	Bytes   int64
	Running bool // the root's run continues
}
