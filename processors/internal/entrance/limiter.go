package entrance

import (
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
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
	idle    *simplelru.LRU[string, struct{}] // the keys without open requests
}

type entry struct {
	open   int
	bucket *rate.Limiter
}

func newLimiter(s auth.Share, keys int) *limiter {
	idle, _ := simplelru.NewLRU[string, struct{}](math.MaxInt, nil) // its only error is a size of 0
	return &limiter{share: s, keys: keys, entries: map[string]*entry{}, idle: idle}
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
		e = &entry{bucket: rate.NewLimiter(rate.Limit(l.share.PerSecond), l.share.Burst)}
		l.entries[key] = e
	}
	l.idle.Remove(key)
	defer l.settle(key, e)
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
	l.settle(key, e)
}

// settle makes an entry without open requests the most recent idle one, and forgets the least recent ones over the limit.
func (l *limiter) settle(key string, e *entry) {
	if e.open == 0 {
		l.idle.Add(key, struct{}{})
	}
	for len(l.entries) > l.keys && l.idle.Len() > 0 {
		oldest, _, _ := l.idle.RemoveOldest()
		delete(l.entries, oldest)
	}
}
