package websocket

import "sync"

// item is a queued frame. If written is not nil, it has a capacity of 1 and receives a value when the frame was written.
type item struct {
	text    []byte
	written chan<- struct{}
}

// queue holds the frames that wait for a client, within limits. It is safe for concurrent use.
type queue struct {
	limits limits
	more   chan struct{} // capacity 1: an item was added
	room   chan struct{} // capacity 1: an item was removed

	mu    sync.Mutex
	items []item
	bytes int
}

func newQueue(l limits) *queue {
	return &queue{limits: l, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put adds an item. It returns false if the item would exceed a limit.
func (q *queue) put(i item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.limits.allow(len(q.items)+1, q.bytes+len(i.text)) {
		return false
	}
	q.items, q.bytes = append(q.items, i), q.bytes+len(i.text)
	signal(q.more)
	return true
}

// wait adds an item as soon as there is room. It returns false if stop is closed before. Several goroutines may wait: each
// item that one of them adds is removed later, which wakes the next.
func (q *queue) wait(stop <-chan struct{}, i item) bool {
	for !q.put(i) {
		select {
		case <-q.room:
		case <-stop:
			return false
		}
	}
	return true
}

// take removes the first item. ok is false if the queue is empty.
func (q *queue) take() (i item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false
	}
	i = q.items[0]
	q.items[0] = item{}
	q.items, q.bytes = q.items[1:], q.bytes-len(i.text)
	signal(q.room)
	return i, true
}

// signal sends without blocking to a channel of capacity 1.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
