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

// DueCuts is how many cuts wait for FlushDue at most.
const DueCuts = dueCuts

// DueBytes is how many bytes of rows wait for FlushDue at most.
const DueBytes = dueBytes

// FlushedOffset is the offset that the base is at, -3 for none.
func (s *Store) FlushedOffset() int64 {
	if offset, err := s.base.offset(); err == nil && offset != noOffset {
		return offset
	}
	return -3
}

// HoldWrite has the next write of the base wait until leave is closed; entered is closed when it does.
func (s *Store) HoldWrite() (entered <-chan struct{}, leave chan<- struct{}) {
	in, out := make(chan struct{}), make(chan struct{})
	s.base = &slow{backing: s.base, entered: in, leave: out}
	return in, out
}

type slow struct {
	backing
	once           sync.Once
	entered, leave chan struct{}
}

func (h *slow) write(l *layer) error {
	h.once.Do(func() {
		close(h.entered)
		<-h.leave
	})
	return h.backing.write(l)
}
