package webchat

import "sync"

// item is a frame that waits for a client. If written is not nil, it receives once whether the frame was written; it has room.
type item struct {
	frame   []byte
	written chan<- bool
}

func (i item) done(ok bool) {
	if i.written != nil {
		i.written <- ok
	}
}

// queue has the frames that wait for a client, within limits. It is safe for concurrent use.
type queue struct {
	frames, bytes int
	more          chan struct{} // capacity 1: an item was added

	mu     sync.Mutex
	items  []item
	used   int
	closed bool
}

func newQueue(frames, bytes int) *queue {
	return &queue{frames: frames, bytes: bytes, more: make(chan struct{}, 1)}
}

// put adds an item. It returns false if there is no room, or after close.
func (q *queue) put(i item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.items) >= q.frames || q.used+len(i.frame) > q.bytes {
		return false
	}
	q.items, q.used = append(q.items, i), q.used+len(i.frame)
	select {
	case q.more <- struct{}{}:
	default:
	}
	return true
}

func (q *queue) take() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false
	}
	i := q.items[0]
	q.items[0] = item{}
	q.items, q.used = q.items[1:], q.used-len(i.frame)
	return i, true
}

// close discards the items, which were not written.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, i := range q.items {
		i.done(false)
	}
	q.items, q.used = nil, 0
}
