package crewhttp

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// The limits of one caller.
const (
	maxMessages    = 50
	messagesWindow = 10 * time.Second
	maxSpawns      = 30
	spawnsWindow   = time.Minute
	// maxWindows is how many callers are remembered. The one that was silent for the longest time is forgotten first.
	maxWindows = 10_000
)

// windows limits how often each caller does something: n times in any period. It is safe for concurrent use.
type windows struct {
	n      int
	period time.Duration

	mu    sync.Mutex
	byKey *simplelru.LRU[string, *window]
}

// window is when a caller did something: a ring of the last n times.
type window struct {
	times []time.Time
	next  int
}

func newWindows(n int, period time.Duration) *windows {
	known, _ := simplelru.NewLRU[string, *window](maxWindows, nil) // its only error is a size of 0
	return &windows{n: n, period: period, byKey: known}
}

// take counts one time of a caller. If it returns a time, the limit is reached, nothing was counted, and the caller may try
// again after that time.
func (w *windows) take(key string, now time.Time) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, ok := w.byKey.Get(key)
	if !ok {
		k = &window{}
		w.byKey.Add(key, k)
	}
	if len(k.times) < w.n {
		k.times = append(k.times, now)
		return 0
	}
	if wait = w.period - now.Sub(k.times[k.next]); wait > 0 {
		return wait
	}
	k.times[k.next] = now
	k.next = (k.next + 1) % w.n
	return 0
}
