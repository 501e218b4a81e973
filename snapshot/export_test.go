package snapshot

// Forget drops everything that the store has in memory of a session.
func (s *Store) Forget(session string) { s.forgetMemory(session) }

// Bounds for tests of what is kept.
const (
	KeyframeEvery    = keyframeEvery
	MaxTimelines     = maxTimelines
	DefaultSaveEvery = defaultSaveEvery
)
