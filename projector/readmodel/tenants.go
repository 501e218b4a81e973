package readmodel

// TenantUse is what a tenant uses, as far as the rows know.
type TenantUse struct {
	Sessions int                // root sessions
	Runs     int                // runs of root sessions that continue
	Bytes    int64              // payloads of all records of its sessions
	Trees    map[string]TreeUse // by root, those that were asked for and are known
}

// TreeUse is what the rows know of one tree.
type TreeUse struct {
	Head    uint64 // up to which it is in the rows
	Bytes   int64
	Running bool // the root's run continues
}
