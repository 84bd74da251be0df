package worker

import (
	"cmp"
	"slices"
	"time"
)

// callID identifies a call.
type callID int64

// need is what a call needs of a bucket.
type need struct {
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

// admission is the state of all calls that wait or run, and decides which of the waiting calls may begin. It has no clock and
// does no I/O: the caller passes the time and performs the decisions. It is not safe for concurrent use.
//
// A call needs buckets, for example those of its tool and of its tenant. It begins when every one of them has place for it;
// until then it holds nothing. A bucket bounds how many calls run at a time and how many units they take per second, and can
// be paused.
//
// Sessions take turns: of the calls that may begin, one of the session that waits in the earliest round is next, and after it
// the session waits in a later round. Of sessions in the same round, the one that runs fewer calls is first. However many calls
// a session has waiting, at most two of them begin before the next call of another session. Calls of a session begin in the
// order of their arrival, except that a call whose buckets are full does not hold up the calls behind it.
//
// It is bounded by the calls that wait or run. A bucket that no call needs is kept only while it is paused or fills up.
type admission struct {
	last     callID
	served   int64 // number of admissions
	round    int64 // the latest round of which a call was admitted
	waiting  []*waitingCall
	running  map[callID]*waitingCall
	sessions map[string]*sessionCalls
	buckets  map[string]*limitBucket
	sweepAt  int // number of buckets at which unused ones are looked for
}

// sessionCalls is a session with calls that wait or run.
type sessionCalls struct {
	round            int64 // in which its next call is due
	served           int64 // its last admission, 0 if it had none
	waiting, running int
}

type waitingCall struct {
	id      callID
	name    string // of the session
	session *sessionCalls
	needs   []need
	buckets []*limitBucket // of the needs
}

// newAdmission returns a state without calls.
func newAdmission() *admission {
	return &admission{running: map[callID]*waitingCall{}, sessions: map[string]*sessionCalls{}, buckets: map[string]*limitBucket{}, sweepAt: minSweep}
}

// minSweep is the smallest number of buckets at which unused ones are looked for.
const minSweep = 64

// Ask adds a call, which waits until Admit returns it.
func (s *admission) Ask(name string, needs []need, now time.Time) callID {
	s.last++
	c := &waitingCall{id: s.last, name: name, needs: needs, session: s.sessions[name]}
	if c.session == nil {
		c.session = &sessionCalls{}
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
func (s *admission) Admit(now time.Time) (begun []callID) {
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
func earlier(a, b *waitingCall) bool {
	return a.session != b.session && cmp.Or(
		cmp.Compare(a.session.round, b.session.round),
		cmp.Compare(a.session.running, b.session.running),
		cmp.Compare(a.session.served, b.session.served),
	) < 0
}

func (c *waitingCall) mayBegin(now time.Time) bool {
	for i, b := range c.buckets {
		if !b.admits(c.needs[i], now) {
			return false
		}
	}
	return true
}

func (s *admission) begin(c *waitingCall, now time.Time) {
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
func (s *admission) Leave(id callID, now time.Time) {
	c, runs := s.running[id]
	if runs {
		delete(s.running, id)
		c.session.running--
	} else {
		i := slices.IndexFunc(s.waiting, func(c *waitingCall) bool { return c.id == id })
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
func (s *admission) Next(now time.Time) (at time.Time, ok bool) {
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
func (s *admission) Waiting() int { return len(s.waiting) }
