package websocket

import (
	"context"
	"iter"
	"sync"

	ws "github.com/coder/websocket"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/internal/socket"
	"github.com/turntable-streams/turntable/topics"
)

// Gates is where a server gets the gates of sessions from. *gatehttp.Index implements it.
type Gates interface {
	// Watch returns the open gates of a session, each as JSON, and calls show for each later change, in order, until stop is
	// called: with opened true for a new gate, with false for one that has ended. show does not block. Watch may block until
	// ctx ends. caller identifies who waits.
	Watch(ctx context.Context, caller, session string, show func(opened bool, gate []byte)) (open iter.Seq[[]byte], stop func(), err error)
}

// gateFeed sends a client the gates of its session. Its frames wait in a queue of its own, within the limits of the client's
// queue, and one at a time is in that of the client: they take no room from the session's other frames, which are queued
// without waiting.
type gateFeed struct {
	client  *client
	session string
	more    chan struct{} // capacity 1: a frame was added

	mu    sync.Mutex
	held  [][]byte
	bytes int // of held
}

// run sends the open gates and then the changes until ctx ends.
func (f *gateFeed) run(ctx context.Context, from Gates, logger *zap.Logger) {
	open, stop, err := from.Watch(ctx, f.client.owner, f.session, f.show)
	if err != nil {
		if ctx.Err() == nil {
			logger.Warn("the gates of a session cannot be shown", zap.Error(err))
			f.client.End(ws.StatusTryAgainLater, "the gates of the session cannot be read now")
		}
		return
	}
	defer stop()
	for gate := range open {
		if !f.send(ctx, gateFrame(f.session, true, gate)) {
			return
		}
	}
	for {
		for _, text := range f.take() {
			if !f.send(ctx, text) {
				return
			}
		}
		select {
		case <-f.more:
		case <-ctx.Done():
			return
		}
	}
}

// send returns when a frame was written. It returns false if ctx ends before.
func (f *gateFeed) send(ctx context.Context, text []byte) bool {
	written := make(chan struct{}, 1)
	if !f.client.Wait(ctx.Done(), noted(text, written)) {
		return false
	}
	select {
	case <-written:
		return true
	case <-ctx.Done():
		return false
	}
}

// noted returns a frame that sends to written, which has a capacity of 1, when it was written.
func noted(text []byte, written chan<- struct{}) socket.Frame {
	return socket.Frame{Text: text, Done: func(ok bool) {
		if ok {
			socket.Signal(written)
		}
	}}
}

func (f *gateFeed) take() (held [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held, f.held, f.bytes = f.held, nil, 0
	return held
}

// show adds a change. A client for which too many wait is disconnected.
func (f *gateFeed) show(opened bool, gate []byte) {
	text := gateFrame(f.session, opened, gate)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.client.config.queue().Allow(len(f.held)+1, f.bytes+len(text)) {
		f.client.End(ws.StatusTryAgainLater, socket.ReasonSlow)
		return
	}
	f.held, f.bytes = append(f.held, text), f.bytes+len(text)
	socket.Signal(f.more)
}

// gateFrame returns the frame of a gate, without the bearer tokens that its arguments may have.
func gateFrame(session string, opened bool, gate []byte) []byte {
	kind := `{"type":"gate_closed","data":`
	if opened {
		kind = `{"type":"gate_opened","data":`
	}
	value, ok := readable(gate)
	if !ok {
		value = topics.Raw(`{}`)
	}
	return completed(append([]byte(kind), value...), session, "")
}
