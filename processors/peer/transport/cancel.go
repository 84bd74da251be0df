package transport

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// Run reads the attempts of an agent until ctx ends, so that a cancel that another process handles ends the attempts of this one.
// Every process with a sink for peers needs it, for each agent. It waits for brokers that are unavailable. opts are the connection
// options of processors.New; an error about them, or about the agent's name, is returned.
func (t *Transport) Run(ctx context.Context, agent string, brokers []string, opts ...processors.Option) error {
	catalog, err := topics.For(agent)
	if err != nil {
		return fmt.Errorf("transport: %w", err)
	}
	f, err := processors.NewFollower(brokers, []string{catalog.PeerAttempts.Name()}, func(r processors.Inbound) {
		if r.Value == nil {
			return
		}
		in := catalog.PeerAttempts.Codec().Unmarshal(r.Value)
		if in.Err != nil {
			return // the sink reports it
		}
		if body, err := peerwire.ReadAttempt(in.Value.Body); err == nil && body.Cancel {
			t.memory.cancel(in.Value, t.clock.Now())
		}
	}, opts...)
	if err != nil {
		return fmt.Errorf("transport: %w", err)
	}
	return f.Run(ctx)
}

// tellTimeout bounds how long a peer is told of a cancel.
const tellTimeout = 10 * time.Second

// cancel ends the attempts of a task in this process, and tells the peer. An attempt that ran here has told it already.
func (t *Transport) cancel(ctx context.Context, d topics.Delivery, body peerwire.Attempt) outcome {
	running := t.memory.cancel(d, t.clock.Now())
	told := false
	for _, e := range running {
		select {
		case <-e.done:
			told = told || e.outcome.answer.Code == peerwire.CodeCancelled && e.outcome.answer.Reached
		case <-ctx.Done():
			return interruption(ctx, network{sent: true})
		}
	}
	if told {
		return outcome{answer: peerwire.Answer{Code: peerwire.CodeCancelled}}
	}
	peer, ok := t.peer(d.Route.Service)
	if !ok {
		return failed(peerwire.CodeUnknownPeer, "unknown peer", final)
	}
	return t.tell(ctx, peer, body.TaskID)
}

// tell tells a peer that a task is no longer wanted, if its card says that it can be told. A peer that does not know the task was
// told successfully.
func (t *Transport) tell(ctx context.Context, peer peer.Outbound, taskID string) outcome {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	card, broken := t.card(ctx, peer, tellTimeout/2)
	switch {
	case broken != nil:
		return *broken
	case !card.Cancel:
		return outcome{answer: peerwire.Answer{Code: peerwire.CodeCancelled}}
	}
	r, err := t.request(ctx, http.MethodDelete, peer, taskPath(taskID), nil)
	if err != nil {
		return failed(peerwire.CodeUnreachable, "request cannot be made", final)
	}
	response, body, lost := t.do(ctx, r, maxError)
	switch {
	case lost != nil:
		return *lost
	case response.StatusCode < 300, response.StatusCode == http.StatusNotFound, response.StatusCode == http.StatusGone:
		return outcome{answer: peerwire.Answer{Code: peerwire.CodeCancelled, Answered: true}}
	default:
		return refused(response, body, t.clock.Now())
	}
}
