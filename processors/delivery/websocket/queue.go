package websocket

import "sync"

// item is a frame that waits for a client. written, if not nil, has room for one and is told when it was written.
type item struct {
	text    []byte
	written chan<- struct{}
}

// queue is what waits for a client, within limits.
type queue struct {
	limits limits
	more   chan struct{} // of one element: something came
	room   chan struct{} // of one element: something was taken

	mu    sync.Mutex
	items []item
	bytes int
}

func newQueue(l limits) *queue {
	return &queue{limits: l, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put adds an item unless that would exceed a limit.
func (q *queue) put(i item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.limits.hold(len(q.items)+1, q.bytes+len(i.text)) {
		return false
	}
	q.items, q.bytes = append(q.items, i), q.bytes+len(i.text)
	signal(q.more)
	return true
}

// wait adds an item when there is room, or returns false when stop is closed. One goroutine at a time waits.
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

// take removes the first item; ok is false when there is none.
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

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
