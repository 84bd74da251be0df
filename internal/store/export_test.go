package store

// Kill leaves the store's files as a killed process does: what LevelDB was not given is lost.
func (s *Store) Kill() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.closed = true
	return s.base.close()
}
