package eventlog

// Bounds for tests at their edge.
const (
	MaxMergedBytes = maxMergedBytes
	MaxShown       = maxShown
)
