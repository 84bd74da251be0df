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
	h := &holding{gate: newGate(), backing: s.base}
	s.base = h
	return h.entered, h.leave
}

// gate holds the first that comes.
type gate struct {
	once           sync.Once
	entered, leave chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan struct{}), leave: make(chan struct{})} }

func (g *gate) pass() {
	g.once.Do(func() {
		close(g.entered)
		<-g.leave
	})
}

type holding struct {
	*gate
	backing
}

func (h *holding) get(key string) (value []byte, ok bool, err error) {
	value, ok, err = h.backing.get(key)
	h.pass()
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

// HoldWrite has the next write of the base wait until leave is closed; entered is closed when it does.
func (s *Store) HoldWrite() (entered <-chan struct{}, leave chan<- struct{}) {
	h := &slow{gate: newGate(), backing: s.base}
	s.base = h
	return h.entered, h.leave
}

type slow struct {
	*gate
	backing
}

func (h *slow) write(l *layer) error {
	h.pass()
	return h.backing.write(l)
}
