package store

import "github.com/turntable-streams/turntable/internal/runtimeapi"

// Set writes a value; nil deletes the key. A recovered store keeps the value: the caller must not change it afterwards.
// Before MarkRecovered, and in a store opened WithThrough, Set copies the value, since a value read from a changelog is a
// slice of a large response.
func (s *Store) Set(key string, value []byte) error {
	s.mu.RLock()
	keep := !s.committed()
	s.mu.RUnlock()
	if !keep {
		value = copied(value)
	}
	return s.write(key, row{value: value})
}

// Delete deletes a key, if it exists.
func (s *Store) Delete(key string) error { return s.write(key, row{}) }

// SetOffset records that the changelog up to offset is in the store. An offset lower than before changes nothing. It is
// stored in the same batch as the rows that it covers, never before them.
func (s *Store) SetOffset(offset int64) error {
	return s.alive(func() error {
		s.mu.Lock()
		if offset > s.newest() {
			s.open.offset = offset
		}
		spill := s.committed() && (s.recovered || s.open.full(1))
		s.mu.Unlock()
		if spill {
			return s.spill()
		}
		return nil
	})
}

func (s *Store) write(key string, r row) error {
	if s.deadline != nil && r.value != nil && !runtimeapi.IsPart(key) {
		var err error
		if r.due, r.timed, err = dueOf(s.deadline, r.value); err != nil {
			return err
		}
	}
	return s.alive(func() error {
		s.mu.Lock()
		s.open.put(key, r)
		s.index(key, r)
		// The offset that covers this row is set next: a limit of two batches lets it get into the same batch.
		full := s.committed() && s.open.full(2)
		s.mu.Unlock()
		if full {
			return s.spill()
		}
		return nil
	})
}

// index updates the due-index for a row; s.mu is held, so that the last writer of a row decides.
func (s *Store) index(key string, r row) {
	switch {
	case s.deadline == nil, runtimeapi.IsPart(key):
	case r.timed:
		s.due.Set(key, r.due)
	default:
		s.due.Remove(key)
	}
}

// committed reports whether writes are committed by definition at this time; s.mu is held.
func (s *Store) committed() bool { return s.through || !s.recovered }

func dueOf(deadline func([]byte) (int64, bool), row []byte) (ms int64, ok bool, err error) {
	defer func() {
		if recover() != nil { // its text may quote the row
			err = ErrDeadline
		}
	}()
	ms, ok = deadline(row)
	return ms, ok, nil
}
