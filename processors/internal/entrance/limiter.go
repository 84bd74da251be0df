package entrance

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/turntable-streams/turntable/processors/auth"
)

// limiter bounds the open requests and the rate of each key. It remembers the keys with open requests, and of the others
// the most recent ones. It is safe for concurrent use.
type limiter struct {
	share auth.Share
	keys  int // how many it remembers

	mu      sync.Mutex
	entries map[string]*entry
	idle    *list.List // of *entry without open requests, the least recent first
}

type entry struct {
	key     string
	open    int
	bucket  *rate.Limiter
	element *list.Element // in idle; nil while requests are open
}

func newLimiter(s auth.Share, keys int) *limiter {
	return &limiter{share: s, keys: keys, entries: map[string]*entry{}, idle: list.New()}
}

// openWait is the Retry-After of a key with too many open requests: it is not known when one of them ends.
const openWait = time.Second

// enter takes a token of a key and counts an open request until leave. If it returns a time, it has done neither, and the
// request may be repeated after that time.
func (l *limiter) enter(key string, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e == nil {
		e = &entry{key: key, bucket: rate.NewLimiter(rate.Limit(l.share.PerSecond), l.share.Burst)}
		l.entries[key] = e
	}
	if e.element != nil {
		l.idle.Remove(e.element)
		e.element = nil
	}
	defer l.settle(e)
	if e.open >= l.share.Open {
		return openWait
	}
	if r := e.bucket.ReserveN(now, 1); r.DelayFrom(now) > 0 {
		wait = r.DelayFrom(now)
		r.CancelAt(now)
		return wait
	}
	e.open++
	return 0
}

// full reports whether a key has as many open requests as it may have.
func (l *limiter) full(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	return e != nil && e.open >= l.share.Open
}

// leave ends a request that has entered.
func (l *limiter) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.open--
	l.settle(e)
}

// settle makes an entry without open requests the most recent idle one, and forgets the least recent ones over the limit.
func (l *limiter) settle(e *entry) {
	if e.open == 0 && e.element == nil {
		e.element = l.idle.PushBack(e)
	}
	for len(l.entries) > l.keys && l.idle.Len() > 0 {
		delete(l.entries, l.idle.Remove(l.idle.Front()).(*entry).key)
	}
}
