package socket

// Limits bounds the number and the total size of frames.
type Limits struct{ Frames, Bytes int }

// Allow reports whether the limits allow so many frames and bytes. A single frame may have any size.
func (l Limits) Allow(frames, bytes int) bool {
	return frames <= l.Frames && (bytes <= l.Bytes || frames <= 1)
}

// Frame is a text frame that waits for a client.
type Frame struct {
	Text []byte
	// Encode, if it is not nil, returns the text instead. The goroutine that writes calls it.
	Encode func() []byte
	// Done, if it is not nil, is called once, with whether the frame was written. It must not block.
	Done func(written bool)
	// Free says that the frame does not count against the limits.
	Free bool
}

// Put queues frames, one behind the other, or none of them. It returns false if they would exceed the limits, or if the connection is
// closed.
func (c *Client) Put(frames ...Frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted, bytes := c.counted, c.bytes
	for _, f := range frames {
		if !f.Free {
			counted, bytes = counted+1, bytes+len(f.Text)
		}
	}
	if c.closed || counted > c.counted && !c.config.Limits.Allow(counted, bytes) {
		return false
	}
	c.frames, c.counted, c.bytes = append(c.frames, frames...), counted, bytes
	Signal(c.more)
	return true
}

// Wait is Put of a frame as soon as there is room. It returns false if stop is closed before. Several goroutines may wait: each frame
// that one of them adds is removed later, which wakes the next.
func (c *Client) Wait(stop <-chan struct{}, f Frame) bool {
	for !c.Put(f) {
		select {
		case <-c.room:
		case <-stop:
			return false
		}
	}
	return true
}

// Take removes the first frame. ok is false if none waits. Serve calls it.
func (c *Client) Take() (f Frame, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.frames) == 0 {
		return f, false
	}
	f = c.frames[0]
	c.frames[0] = Frame{}
	c.frames = c.frames[1:]
	if !f.Free {
		c.counted, c.bytes = c.counted-1, c.bytes-len(f.Text)
	}
	Signal(c.room)
	return f, true
}

// discard drops all frames, which were not written, and accepts no more.
func (c *Client) discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, f := range c.frames {
		f.done(false)
	}
	c.frames = nil
}

func (f Frame) done(written bool) {
	if f.Done != nil {
		f.Done(written)
	}
}

// Signal sends to a channel of capacity 1, unless a signal is in it.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
