package store

// Has reports whether a key has a value.
func (s *Store) Has(key string) (has bool, err error) {
	err = s.alive(func() error {
		s.mu.RLock()
		r, ok := s.layered(key)
		s.mu.RUnlock()
		if ok {
			has = r.value != nil
			return nil
		}
		has, err = s.base.has(key)
		return err
	})
	return has, err
}

// Get returns a key's value, or nil if it has none. The value is a copy unless the store is WithShared.
func (s *Store) Get(key string) ([]byte, error) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return nil, s.named(ErrClosed)
	}
	value, err := s.find(key)
	if !s.shared {
		value = copied(value)
	}
	return value, err
}

// find looks a key up, in the layers first. It returns the stored bytes, not a copy.
func (s *Store) find(key string) ([]byte, error) {
	s.mu.Lock()
	if r, ok := s.layered(key); ok {
		s.mu.Unlock()
		return r.value, nil
	}
	if s.clean == nil {
		s.mu.Unlock()
		value, _, err := s.base.get(key)
		return value, err
	}
	value, ok := s.clean.get(key)
	writes := s.clean.writes
	s.mu.Unlock()
	if ok {
		return value, nil
	}
	value, ok, err := s.base.get(key)
	if ok {
		s.mu.Lock()
		s.clean.read(key, value, writes)
		s.mu.Unlock()
	}
	return value, err
}

// GetOffset returns the highest changelog offset that was set, also before the store was last opened, or def if there is
// none.
func (s *Store) GetOffset(def int64) (offset int64, err error) {
	err = s.alive(func() error {
		s.mu.RLock()
		defer s.mu.RUnlock()
		offset = s.newest()
		if offset == noOffset {
			offset = def
		}
		return nil
	})
	return offset, err
}

// layered looks a key up in the layers; s.mu is held.
func (s *Store) layered(key string) (row, bool) {
	r, ok := s.open.rows[key]
	if !ok && s.sealed != nil {
		r, ok = s.sealed.rows[key]
	}
	return r, ok
}

// newest returns the highest offset of base and layers; s.mu is held.
func (s *Store) newest() int64 {
	n := max(s.flushed, s.open.offset)
	if s.sealed != nil {
		n = max(n, s.sealed.offset)
	}
	return n
}

// copied copies a value. It keeps the difference between nil and an empty value.
func copied(v []byte) []byte {
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}
