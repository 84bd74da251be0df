package crewhttp

import (
	"container/list"
	"sync"
	"time"
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
	byKey map[string]*window
	used  *list.List // of *window, the last one used last
}

// window is when a caller did something: a ring of the last n times.
type window struct {
	key     string
	times   []time.Time
	next    int
	element *list.Element
}

func newWindows(n int, period time.Duration) *windows {
	return &windows{n: n, period: period, byKey: map[string]*window{}, used: list.New()}
}

// take counts one time of a caller. If it returns a time, the limit is reached, nothing was counted, and the caller may try
// again after that time.
func (w *windows) take(key string, now time.Time) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.byKey[key]
	if k == nil {
		k = &window{key: key}
		k.element = w.used.PushBack(k)
		w.byKey[key] = k
		if w.used.Len() > maxWindows {
			delete(w.byKey, w.used.Remove(w.used.Front()).(*window).key)
		}
	}
	w.used.MoveToBack(k.element)
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
