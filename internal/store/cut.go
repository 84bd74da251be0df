package store

import (
	"errors"
)

// Seal ends the running cut: what was written since the last Seal becomes part of the cuts that Flush writes, and reads
// still see it. The caller makes sure that nothing is in flight: no row is written whose offset is not set yet. Seal does
// no I/O. It reports whether there is something new to flush. It does nothing while earlier cuts are being flushed (a
// later Seal takes what has gathered), if nothing was written, before MarkRecovered, after Close, and in a store opened
// WithThrough.
func (s *Store) Seal() bool {
	s.life.RLock()
	defer s.life.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.committed():
		return false
	case s.sealed == nil:
		return s.swap()
	case s.flushing || s.open.empty():
		return false
	}
	s.sealed.take(s.open)
	if len(s.open.rows) <= recycledRows {
		s.open.reset()
	} else {
		s.open = newLayer()
	}
	return true
}

// SetSealedOffset records that the changelog up to offset is in the rows of the sealed cuts, and not in later rows. If
// nothing is sealed it is SetOffset.
func (s *Store) SetSealedOffset(offset int64) error {
	sealed := false
	err := s.alive(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if sealed = s.sealed != nil; sealed {
			s.sealed.offset = max(s.sealed.offset, offset)
		}
		return nil
	})
	if sealed || err != nil {
		return err
	}
	return s.SetOffset(offset)
}

// Flush writes the sealed cuts to the base as one batch, and writes nothing if nothing is sealed. It may run concurrently
// with every other method. After an error the cuts are still sealed and Flush may be called again.
func (s *Store) Flush() error { return s.alive(s.flush) }

// Heavy reports whether the sealed cuts have reached the size of a batch: 1000 rows or 1 MiB.
func (s *Store) Heavy() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sealed != nil && s.sealed.full(1)
}

// Pending returns the size of the open layer: the number of its keys, and the bytes of keys and values.
func (s *Store) Pending() (rows, bytes int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.open.rows), s.open.bytes
}

// MarkRecovered writes what recovery has not written yet. Later writes go into the open layer.
func (s *Store) MarkRecovered() error {
	return s.alive(func() error {
		if err := s.settle(); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.recovered = true
		if s.path != "" && !s.through && s.clean == nil {
			s.clean = newClean()
		}
		return nil
	})
}

// Close writes what is committed by definition, discards the open and sealed layers, ends the store's iterators and
// releases the path. It waits for methods that are running, Flush included. Further calls of Close do nothing.
func (s *Store) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	err := s.settle()
	s.closed = true
	for it := range s.iterators {
		it.base.release()
	}
	s.iterators = nil
	return errors.Join(err, s.base.close())
}

// settle spills if writes are committed by definition.
func (s *Store) settle() error {
	s.mu.RLock()
	committed := s.committed()
	s.mu.RUnlock()
	if !committed {
		return nil
	}
	return s.spill()
}

// spill writes committed rows to the base.
func (s *Store) spill() error {
	if err := s.flush(); err != nil { // the layer that an earlier spill could not write
		return err
	}
	s.mu.Lock()
	s.swap()
	s.mu.Unlock()
	return s.flush()
}

// swap seals the open layer and reports whether it did; s.mu is held.
func (s *Store) swap() bool {
	if s.sealed != nil || s.open.empty() {
		return false
	}
	s.sealed, s.open, s.spare = s.open, s.spare, nil
	if s.open == nil {
		s.open = newLayer()
	}
	return true
}

func (s *Store) flush() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	l := s.sealed
	s.flushing = l != nil
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	err := s.base.write(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushing = false
	if err != nil {
		return err
	}
	s.flushed = max(s.flushed, l.offset)
	s.sealed = nil
	if s.clean != nil {
		s.clean.written(l)
	}
	if len(l.rows) <= recycledRows {
		l.reset()
		s.spare = l
	}
	return nil
}
