package door

import "sync"

// queueLimits bounds the number and the total size of frames.
type queueLimits struct{ frames, bytes int }

// allow reports whether the limits allow so many frames and bytes. A single frame may have any size.
func (l queueLimits) allow(frames, bytes int) bool {
	return frames <= l.frames && (bytes <= l.bytes || frames <= 1)
}

// queue holds the frames that wait for a client, within limits. It is safe for concurrent use.
type queue struct {
	limits queueLimits
	more   chan struct{} // capacity 1: a frame was added

	mu     sync.Mutex
	frames [][]byte
	bytes  int
	state  *byte // the first of a frame that is not counted in bytes; nil if none waits
}

func newQueue(l queueLimits) *queue { return &queue{limits: l, more: make(chan struct{}, 1)} }

// put adds a frame. It returns false if the frame would exceed a limit.
func (q *queue) put(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.add(frame)
}

func (q *queue) add(frame []byte) bool {
	if !q.limits.allow(len(q.frames)+1, q.bytes+len(frame)) {
		return false
	}
	q.frames, q.bytes = append(q.frames, frame), q.bytes+len(frame)
	select {
	case q.more <- struct{}{}:
	default:
	}
	return true
}

// putState adds a frame that does not count, unless another such frame waits.
func (q *queue) putState(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state == nil && len(frame) > 0 {
		q.state, q.bytes = &frame[0], q.bytes-len(frame)
	}
	return q.add(frame)
}

// take removes the first frame. ok is false if the queue is empty.
func (q *queue) take() (frame []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == 0 {
		return nil, false
	}
	frame = q.frames[0]
	q.frames[0] = nil
	q.frames, q.bytes = q.frames[1:], q.bytes-len(frame)
	if len(frame) > 0 && q.state == &frame[0] {
		q.state, q.bytes = nil, q.bytes+len(frame)
	}
	return frame, true
}
