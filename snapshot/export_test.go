package snapshot

// Forget drops everything that the store has in memory of a session.
func (s *Store) Forget(session string) { s.forgetMemory(session) }

// Packed is the form of folds that are not in JSON.
var Packed = packed

// Bounds for tests of what is kept.
const (
	KeyframeEvery    = keyframeEvery
	MaxTimelines     = maxTimelines
	DefaultSaveEvery = defaultSaveEvery
)
