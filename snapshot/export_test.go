package snapshot

// Forget makes the store one that has not seen the session.
func (s *Store) Forget(session string) { s.forgetMemory(session) }
