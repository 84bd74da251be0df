package invoke

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// errPaused ends a stream whose turn waits for decisions. The turn continues when they are made; the client reads on from
// there, or its answer is the request that does.
var errPaused = errors.New("invoke: the turn is paused")

// awaited is a decision that the request has written.
type awaited struct {
	gate, decision string
	verdict        topics.GateVerdict
}

// agrees reports whether an outcome is that of the decision.
func (a awaited) agrees(o *topics.GateOutcome) bool {
	want := topics.GateApproved
	if a.verdict == topics.VerdictDeny {
		want = topics.GateDenied
	}
	return o.DecisionID == a.decision && o.Status == want
}

// pausesAt adds a terminal record to the pauses; true if the turn may go on after it.
func (s *pipelineStream) pausesAt(e topics.AgentEvent) bool {
	return s.pauses != nil && s.pauses.result(*e.Result, e.Seq, s.written)
}

// lastDone returns a done event without a stop reason, if the turn ended without one after a pause: otherwise the stop reason
// of the pause would be that of the turn. It has the number of the terminal record.
func (s *pipelineStream) lastDone(e topics.AgentEvent) (Item, bool) {
	if s.pauses == nil || !s.pauses.stale || !e.Result.OK || e.Result.StopReason != nil {
		return Item{}, false
	}
	s.pauses.stale = false
	s.ready = append([]topics.AgentEvent{e}, s.ready...)
	return Item{ID: EventID{Turn: e.TurnID, Attempt: uint64(e.Attempt), Seq: uint64(e.Seq)}, Event: folder.Done(nil)}, true
}

// gates returns the interactions of the turn with what is known about their gates now.
func (s *pipelineStream) gates() []gated {
	return s.pauses.gates(s.session, s.turn, s.sequence.attempt, func(gate string) *topics.GateOutcome {
		return s.pipeline.hub.outcome(s.session, gate)
	})
}

// ending adds to the end of a turn which of its interactions are decided.
func (s *pipelineStream) ending(end folder.End) folder.End {
	if s.pauses != nil {
		end.Decided = decided(s.gates())
	}
	return end
}

// pause ends the stream at a pause.
func (s *pipelineStream) pause() (Item, error) {
	s.end = s.ending(folder.End{State: folder.Complete, StopReason: quote(stopPaused)})
	return Item{}, io.EOF
}

// pausedUntil returns until when a stream at a pause waits for a record, and the error after that. ok is false if the turn is
// not paused.
func (s *pipelineStream) pausedUntil() (until time.Time, late error, ok bool) {
	config := s.pipeline.config
	if s.pauses == nil || s.pauses.at == 0 {
		return time.Time{}, nil, false
	}
	if !anyOpen(s.gates()) { // the runner continues
		return s.touched.Add(config.Silence), errSilent, true
	}
	if s.pauses.stopped {
		return config.Clock.Now(), errPaused, true
	}
	return s.pauses.since.Add(config.Grace), errPaused, true
}

// settle looks up the outcomes of the request's decisions. It fails if another decision, or a deadline, came first.
func (s *pipelineStream) settle() error {
	left := s.awaits[:0]
	var err error
	for _, a := range s.awaits {
		switch o := s.pipeline.hub.outcome(s.session, a.gate); {
		case o == nil:
			left = append(left, a)
		case !a.agrees(o) && err == nil:
			err = errDecided(o)
		}
	}
	s.awaits = left
	return err
}

// await waits for the outcomes of the request's decisions, for answerTimeout at most. After that, the gates count as open.
func (s *pipelineStream) await(ctx context.Context) error {
	s.answerBy = s.pipeline.config.Clock.Now().Add(answerTimeout)
	bytes, counted := 0, 0
	for {
		if err := s.settle(); err != nil {
			return err
		}
		if len(s.awaits) == 0 || bytes > s.pipeline.config.WaitingBytes {
			return nil
		}
		switch err := s.step(ctx); {
		case errors.Is(err, errUnsettled):
			s.awaits = nil
		case err != nil:
			return err
		}
		for ; counted < len(s.ready); counted++ {
			bytes += sizeOf(s.ready[counted])
		}
	}
}

// errUnsettled means that a decision has no outcome in time.
var errUnsettled = errors.New("invoke: the decision has no outcome yet")

// answerTimeout is how long a request waits for the outcome of its decision before it answers that the turn is still paused.
const answerTimeout = 10 * time.Second
