package store

// Kill leaves the store's files as a killed process does: what LevelDB was not given is lost.
func (s *Store) Kill() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.closed = true
	return s.base.close()
}

// FailWrites makes the next n writes of the base fail with err.
func (s *Store) FailWrites(n int, err error) { s.base = &failing{s.base, n, err} }

type failing struct {
	backing
	times int
	err   error
}

func (f *failing) write(l *layer) error {
	if f.times--; f.times >= 0 {
		return f.err
	}
	return f.backing.write(l)
}
