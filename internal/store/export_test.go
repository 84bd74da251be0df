package store

import "sync"

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

// HoldRead has the next read of the base wait, once it has its value, until leave is closed; entered is closed when it does.
func (s *Store) HoldRead() (entered <-chan struct{}, leave chan<- struct{}) {
	in, out := make(chan struct{}), make(chan struct{})
	s.base = &holding{backing: s.base, entered: in, leave: out}
	return in, out
}

type holding struct {
	backing
	once           sync.Once
	entered, leave chan struct{}
}

func (h *holding) get(key string) (value []byte, ok bool, err error) {
	value, ok, err = h.backing.get(key)
	h.once.Do(func() {
		close(h.entered)
		<-h.leave
	})
	return value, ok, err
}

// CountReads counts the reads that reach the base.
func (s *Store) CountReads() *int {
	c := &counting{backing: s.base}
	s.base = c
	return &c.reads
}

type counting struct {
	backing
	reads int
}

func (c *counting) get(key string) (value []byte, ok bool, err error) {
	c.reads++
	return c.backing.get(key)
}

// CleanBytes is what is kept of the base at most.
const CleanBytes = cleanBytes
