package consumer

// Commits returns how many commit requests a running source has sent.
func (s *Source) Commits() int {
	m := s.member.Load()
	m.committing <- struct{}{}
	defer func() { <-m.committing }()
	return m.group.(*offsets).commits
}

// Generation returns the generation of the group that the source is in, 0 if it is in none.
func (s *Source) Generation() int32 {
	m := s.member.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.generation == nil {
		return 0
	}
	return m.generation.GenerationID()
}
