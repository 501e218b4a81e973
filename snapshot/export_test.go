package snapshot

// Forget drops everything that the store has in memory of a session.
func (s *Store) Forget(session string) { s.forgetMemory(session) }
