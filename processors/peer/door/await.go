package door

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
)

// await blocks until a task has ended, for at most a time.
func (h *Handler) await(ctx context.Context, w *waiter, most time.Duration) (topics.PeerReply, ending) {
	over := h.options.clock.NewTicker(max(most, time.Millisecond))
	defer over.Stop()
	for {
		select {
		case reply := <-w.replies:
			if reply.State != topics.PeerRunning {
				return reply, replied
			}
		case <-over.C():
			return topics.PeerReply{}, silent
		case <-ctx.Done():
			return topics.PeerReply{}, gone
		case <-h.replies.ended:
			return topics.PeerReply{}, stopped
		}
	}
}

// poll blocks until a task has ended, or until a time is over and the group has said that the task runs. The commands of the
// waiter ask for that.
func (h *Handler) poll(ctx context.Context, w *waiter, most time.Duration) (topics.PeerReply, ending) {
	answering := h.options.clock.NewTicker(answerTime)
	defer answering.Stop()
	var over <-chan time.Time
	waited, running := most <= 0, false
	if !waited {
		t := h.options.clock.NewTicker(most)
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
		case <-h.replies.ended:
			return topics.PeerReply{}, stopped
		}
		if waited && running {
			return topics.PeerReply{}, runs
		}
	}
}
