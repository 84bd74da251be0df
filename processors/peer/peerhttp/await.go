package peerhttp

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// ending is why a wait for a reply has ended.
type ending int

const (
	replied ending = iota // there is a reply that ends the task, or refuses it
	runs                  // the time of the request is over, and the task runs
	gone                  // the client has disconnected
	silent                // the group has not answered
	stopped               // the replies have ended: the process stops
)

const (
	// answerTime is how long a request waits until the group says that a task runs. A group that starts, or restores its table,
	// takes seconds.
	answerTime = 15 * time.Second
	// replyMargin is how long a request waits for the reply after the deadline of its task.
	replyMargin = 15 * time.Second
	// leaveTime is how long a request whose client has gone waits before it counts as left. A server that stops ends the contexts
	// of its requests too (http.Server.Close, or a BaseContext that ends), at about the time when the replies end. Then no client
	// has left, and the run must not be cancelled.
	leaveTime = time.Second
)

// await blocks until a task has ended, for at most a time. It returns gone a little later than the client has disconnected, when it
// is known that this process does not stop.
func (h *Handler) await(ctx context.Context, w *waiter, most time.Duration) (topics.PeerReply, ending) {
	over := h.config.Clock.NewTicker(max(most, time.Millisecond))
	defer over.Stop()
	left, leaving := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case reply := <-w.replies:
			if reply.State != topics.PeerRunning {
				return reply, replied
			}
		case <-over.C():
			return topics.PeerReply{}, silent
		case <-left:
			t := h.config.Clock.NewTicker(leaveTime)
			defer t.Stop()
			left, leaving = nil, t.C()
		case <-leaving:
			return topics.PeerReply{}, gone
		case <-h.replies.follows.Ended:
			return topics.PeerReply{}, stopped
		}
	}
}

// poll blocks until a task has ended, or until a time is over and the group has said that the task runs. The commands of the
// waiter ask for that. If the process stops, the time is over: the next request waits in another process.
func (h *Handler) poll(ctx context.Context, w *waiter, most time.Duration) (topics.PeerReply, ending) {
	answering := h.config.Clock.NewTicker(answerTime)
	defer answering.Stop()
	var over <-chan time.Time
	waited, running := most <= 0, false
	if !waited {
		t := h.config.Clock.NewTicker(most)
		defer t.Stop()
		over = t.C()
	}
	for {
		select {
		case reply := <-w.replies:
			if reply.State != topics.PeerRunning {
				return reply, replied
			}
			running = true
		case <-over:
			waited = true
		case <-answering.C():
			if !running {
				return topics.PeerReply{}, silent
			}
		case <-ctx.Done():
			return topics.PeerReply{}, gone
		case <-h.replies.follows.Ended:
			if !running {
				return topics.PeerReply{}, stopped
			}
			waited = true
		}
		if waited && running {
			return topics.PeerReply{}, runs
		}
	}
}
