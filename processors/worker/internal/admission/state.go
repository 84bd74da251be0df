package admission

import (
	"cmp"
	"slices"
	"time"
)

// ID identifies a call.
type ID int64

// Need is what a call needs of a bucket.
type Need struct {
	Bucket string
	// Concurrency is how many calls of the bucket may run when this one does; 0 means any number.
	Concurrency int
	// Rate is how many units the bucket gets per second, up to Burst, which it has at first. 0 means that units are not
	// counted.
	Rate, Burst float64
	// Cost is how many units the call takes. One unit must be left when it begins; if it takes more than are left, the
	// following calls wait until the bucket has a unit again.
	Cost float64
}

// State is the state of all calls that wait or run. It is not safe for concurrent use.
type State struct {
	last     ID
	served   int64 // number of admissions
	round    int64 // the latest round of which a call was admitted
	waiting  []*call
	running  map[ID]*call
	sessions map[string]*session
	buckets  map[string]*bucket
	sweepAt  int // number of buckets at which unused ones are looked for
}

// session is a session with calls that wait or run.
type session struct {
	round            int64 // in which its next call is due
	served           int64 // its last admission, 0 if it had none
	waiting, running int
}

type call struct {
	id      ID
	name    string // of the session
	session *session
	needs   []Need
	buckets []*bucket // of the needs
}

// New returns a state without calls.
func New() *State {
	return &State{running: map[ID]*call{}, sessions: map[string]*session{}, buckets: map[string]*bucket{}, sweepAt: minSweep}
}

// minSweep is the smallest number of buckets at which unused ones are looked for.
const minSweep = 64

// Ask adds a call, which waits until Admit returns it.
func (s *State) Ask(name string, needs []Need, now time.Time) ID {
	s.last++
	c := &call{id: s.last, name: name, needs: needs, session: s.sessions[name]}
	if c.session == nil {
		c.session = &session{}
		s.sessions[name] = c.session
	}
	if c.session.waiting == 0 {
		c.session.round = s.round + 1
	}
	c.session.waiting++
	for _, n := range needs {
		b := s.bucket(n.Bucket, now)
		b.configure(n, now)
		b.calls++
		c.buckets = append(c.buckets, b)
	}
	s.waiting = append(s.waiting, c)
	return c.id
}

// Admit returns the calls that begin now, in their order.
func (s *State) Admit(now time.Time) (begun []ID) {
	for {
		next := -1
		for i, c := range s.waiting {
			if (next < 0 || earlier(c, s.waiting[next])) && c.mayBegin(now) {
				next = i
			}
		}
		if next < 0 {
			return begun
		}
		c := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.begin(c, now)
		begun = append(begun, c.id)
	}
}

// earlier reports whether the session of a is to be served before that of b. Calls of a session are in the order of their
// arrival, and so are those of sessions that are equal.
func earlier(a, b *call) bool {
	return a.session != b.session && cmp.Or(
		cmp.Compare(a.session.round, b.session.round),
		cmp.Compare(a.session.running, b.session.running),
		cmp.Compare(a.session.served, b.session.served),
	) < 0
}

func (c *call) mayBegin(now time.Time) bool {
	for i, b := range c.buckets {
		if !b.admits(c.needs[i], now) {
			return false
		}
	}
	return true
}

func (s *State) begin(c *call, now time.Time) {
	s.served++
	s.round = max(s.round, c.session.round)
	c.session.served, c.session.round = s.served, s.round+1
	c.session.waiting--
	c.session.running++
	s.running[c.id] = c
	for i, b := range c.buckets {
		b.running++
		b.take(c.needs[i].Cost, now)
	}
}

// Leave ends a call that runs, or gives up one that waits.
func (s *State) Leave(id ID, now time.Time) {
	c, runs := s.running[id]
	if runs {
		delete(s.running, id)
		c.session.running--
	} else {
		i := slices.IndexFunc(s.waiting, func(c *call) bool { return c.id == id })
		if i < 0 {
			return
		}
		c = s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		c.session.waiting--
	}
	if c.session.waiting == 0 && c.session.running == 0 {
		delete(s.sessions, c.name)
	}
	for i, b := range c.buckets {
		b.calls--
		if runs {
			b.running--
		}
		if b.unused(now) {
			delete(s.buckets, c.needs[i].Bucket)
		}
	}
}

// Next returns when a waiting call may begin without another one ending first. It reports false if there is none.
func (s *State) Next(now time.Time) (at time.Time, ok bool) {
	for _, c := range s.waiting {
		ready, possible := now, true
		for i, b := range c.buckets {
			if b.full(c.needs[i]) {
				possible = false
				break
			}
			if t := b.ready(now); t.After(ready) {
				ready = t
			}
		}
		if possible && (!ok || ready.Before(at)) {
			at, ok = ready, true
		}
	}
	return at, ok
}

// Waiting returns how many calls wait.
func (s *State) Waiting() int { return len(s.waiting) }
