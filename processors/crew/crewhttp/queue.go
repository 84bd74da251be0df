package crewhttp

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
	caught chan struct{} // capacity 1: the last frame of a replay was taken

	mu       sync.Mutex
	frames   []waiting
	counted  int // frames that count against limits, and bytes their size
	bytes    int
	replayed int // frames of replays
}

// waiting is a frame in a queue.
type waiting struct {
	missed
	replayed bool // it does not count against the limits
}

func newQueue(l queueLimits) *queue {
	return &queue{limits: l, more: make(chan struct{}, 1), caught: make(chan struct{}, 1)}
}

// put adds a frame. It returns false if the frame would exceed a limit.
func (q *queue) put(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.limits.allow(q.counted+1, q.bytes+len(frame)) {
		return false
	}
	q.frames = append(q.frames, waiting{missed: missed{frame: frame}})
	q.counted, q.bytes = q.counted+1, q.bytes+len(frame)
	signal(q.more)
	return true
}

// putReplay adds the frames of a replay. They do not count against the limits.
func (q *queue) putReplay(r *replay) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range r.frames {
		q.frames = append(q.frames, waiting{missed: m, replayed: true})
	}
	q.replayed += len(r.frames)
	signal(q.more)
}

// take removes the first frame. ok is false if the queue is empty.
func (q *queue) take() (frame []byte, ok bool) {
	w, ok := q.first()
	if !ok {
		return nil, false
	}
	return w.encoded(), true
}

func (q *queue) first() (w waiting, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == 0 {
		return w, false
	}
	w = q.frames[0]
	q.frames[0] = waiting{}
	q.frames = q.frames[1:]
	if !w.replayed {
		q.counted, q.bytes = q.counted-1, q.bytes-len(w.frame)
		return w, true
	}
	if q.replayed--; q.replayed == 0 {
		signal(q.caught)
	}
	return w, true
}

// replaying reports whether a frame of a replay is in the queue.
func (q *queue) replaying() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.replayed > 0
}

// awaitReplay waits until no frame of a replay is in the queue, or until ended is closed.
func (q *queue) awaitReplay(ended <-chan struct{}) {
	for q.replaying() {
		select {
		case <-q.caught:
		case <-ended:
			return
		}
	}
}

// signal sends to a channel of capacity 1, unless a signal is in it.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
