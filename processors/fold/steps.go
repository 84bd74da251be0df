package fold

import (
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/fold/internal/merge"
	"github.com/turntable-streams/turntable/topics"
)

// A stepped turn has several writers: the workers of the model, each with an attempt at a step, and the turn, which writes the
// records between. They do not know of each other, and their records arrive in any order. The events of the turn are:
//
//	step_start  events of the attempt that counts  step_end  results ...  step_start  ...  result
//
// The turn's records are applied in the order in which they arrive. The one that ends a step names the attempt that counts, and
// waits for its events. Until then the greatest attempt counts; all others are kept, because any of them may be named. The events
// of later steps are kept until these begin.

// maxRuns is the maximum number of attempts that are kept of a turn.
const maxRuns = 16

// receiveOfStep applies a record of a stepped turn.
func (s *transition) receiveOfStep(e topics.AgentEvent) {
	t := s.find(e.TurnID)
	if t == nil {
		if _, closed := s.closedAttempt(e.TurnID); closed {
			return
		}
		if e.IfBegun { // a worker that does not know it yet may still begin a stream
			s.remember(digests.Of(ofTurn, e.TurnID), 1)
			s.changed = true
			return
		}
		t = s.begin(e.TurnID, 1)
		t.Stepped, t.TouchedMs, s.changed = true, s.nowMS(), true
	}
	switch {
	case !t.Stepped:
		s.DeadLetter(reasonMixed)
	case e.Author == topics.AuthorTurn:
		s.receiveOfTurn(t, e)
	case e.Result != nil:
		s.DeadLetter(reasonWriter)
	default:
		s.receiveOfRun(t, e)
	}
}

// receiveOfRun applies an event of an attempt at a step.
func (s *transition) receiveOfRun(t *foldrow.Turn, e topics.AgentEvent) {
	step := uint64(e.Step)
	if step < t.Step || step == t.Step && t.Settled {
		return
	}
	if !merge.Begin(merged{s, t}, e) {
		return
	}
	run := runOf(t, step, uint64(e.Attempt))
	if run != nil && s.repeats(run, e) {
		return
	}
	if run == nil {
		if run = s.beginRun(t, step, uint64(e.Attempt)); run == nil {
			return
		}
	}
	s.changed, t.TouchedMs = true, s.nowMS()
	if uint64(e.Seq) != run.Seq+1 {
		s.hold(run, e)
		return
	}
	if !s.take(run, e) {
		return
	}
	if s.release(run); s.find(t.Id) == t {
		merge.Continue(merged{s, t})
	}
}

// runOf returns an attempt at a step; nil if there is none.
func runOf(t *foldrow.Turn, step, attempt uint64) *foldrow.Turn {
	for _, run := range t.Runs {
		if run.Step == step && run.Attempt == attempt {
			return run
		}
	}
	return nil
}

// ownAttempt is the attempt whose events the turn writes for a worker that wrote none.
const ownAttempt = 1

// beginRun adds an attempt. If there are maxRuns, the one with the lowest number is dropped of those that nothing speaks for: an
// attempt of the turn itself, one that is shown, or one that the turn has named is kept. It returns nil if all are.
func (s *transition) beginRun(t *foldrow.Turn, step, attempt uint64) *foldrow.Turn {
	if len(t.Runs) >= maxRuns {
		others := slices.DeleteFunc(slices.Clone(t.Runs), func(run *foldrow.Turn) bool {
			return run.Attempt == ownAttempt || run.Step == t.Step && run.Attempt == t.Shown || s.isNamed(t, run)
		})
		if len(others) == 0 {
			return nil
		}
		s.dropRun(t, slices.MinFunc(others, func(a, b *foldrow.Turn) int { return cmp.Compare(a.Attempt, b.Attempt) }))
	}
	run := &foldrow.Turn{Stepped: true, Step: step, Attempt: attempt}
	t.Runs = append(t.Runs, run)
	return run
}

// isNamed reports whether a record of the turn that waits names the attempt as that of its step.
func (s *transition) isNamed(t, run *foldrow.Turn) bool {
	return slices.ContainsFunc(t.Queue, func(q *foldrow.Queued) bool {
		if q.Step != run.Step {
			return false
		}
		raw, _ := s.read(q.Part)
		e, err := topics.DecodeAgentEvent(raw)
		return err == nil && e.Settles != nil && uint64(e.Settles.Attempt) == run.Attempt
	})
}

func (s *transition) dropRun(t, run *foldrow.Turn) {
	s.dropEvents(run)
	t.Runs = slices.DeleteFunc(t.Runs, func(o *foldrow.Turn) bool { return o == run })
}

// ownerOf returns the open turn of an attempt; a turn is its own.
func (s *transition) ownerOf(t *foldrow.Turn) *foldrow.Turn {
	for _, o := range s.row.Open {
		if slices.Contains(o.Runs, t) {
			return o
		}
	}
	return t
}

// receiveOfTurn applies a record of the turn itself, or keeps it until it can be applied.
func (s *transition) receiveOfTurn(t *foldrow.Turn, e topics.AgentEvent) {
	step, seq := uint64(e.Step), uint64(e.Seq)
	known := step < t.Step || step == t.Step && slices.Contains(t.Seen, seq)
	if known && seq == merge.SeqStepStart && step == t.Step && e.UntilMS > t.UntilMs { // also one whose clock a gate has stopped
		t.UntilMs, s.changed = e.UntilMS, true
	}
	if known && e.Result == nil || slices.ContainsFunc(t.Queue, func(q *foldrow.Queued) bool { return q.Step == step && q.Seq == seq }) {
		return
	}
	s.changed, t.TouchedMs, t.UntilMs = true, s.nowMS(), e.UntilMS
	merge.Receive(merged{s, t}, e)
}

// merged is a turn in a row as merge.Turn. A method that returns false has closed it.
type merged struct {
	s *transition
	t *foldrow.Turn
}

func (m merged) At() merge.Place {
	return merge.Place{Step: int64(m.t.Step), Shown: int64(m.t.Shown), Settled: m.t.Settled}
}

func (m merged) Move(to merge.Place) {
	if uint64(to.Step) != m.t.Step {
		m.t.Seen = nil
	}
	m.t.Step, m.t.Shown, m.t.Settled = uint64(to.Step), uint64(to.Shown), to.Settled
}

func (m merged) Received(step, attempt int64) int64 {
	return int64(runOf(m.t, uint64(step), uint64(attempt)).GetSeq())
}

func (m merged) Greatest() (attempt int64) {
	for _, run := range m.t.Runs {
		if run.Step == m.t.Step && run.Seq > 0 {
			attempt = max(attempt, int64(run.Attempt))
		}
	}
	return attempt
}

func (m merged) Show(attempt int64, _ *topics.AgentAttempt) bool {
	if m.t.Shown != 0 && m.t.Shown != uint64(attempt) {
		m.t.Attempt++ // readers have events that are void now
	}
	return true
}

func (m merged) Settle() {
	s, t := m.s, m.t
	if run := runOf(t, t.Step, t.Shown); run != nil {
		if len(t.Tail) > 0 {
			s.flushTail(t)
		}
		t.Parts, t.PartsSize, t.Tail = append(t.Parts, run.Parts...), t.PartsSize+run.PartsSize, run.Tail
		t.Seq, t.Refused = t.Seq+run.Seq, t.Refused+run.Refused
		run.Parts, run.PartsSize, run.Tail = nil, 0, nil
	}
	for _, run := range slices.Clone(t.Runs) {
		if run.Step <= t.Step {
			s.dropRun(t, run)
		}
	}
}

func (m merged) Add(e topics.AgentEvent) bool {
	if m.s.changed = true; e.Result != nil {
		m.t.Seq++
		m.s.close(m.t, byResult(*e.Result))
		return false
	}
	m.t.Seen = append(m.t.Seen, uint64(e.Seq))
	if event, err := folder.DecodeEvent([]byte(e.Event)); err == nil && !m.s.store(m.t, event) {
		return false
	}
	m.t.Seq++
	return true
}

func (m merged) Wait(e topics.AgentEvent) {
	s, t := m.s, m.t
	if len(t.Queue) == 0 {
		t.GapMs = s.nowMS()
	}
	raw := topics.EncodeAgentEvent(e)
	if len(t.Queue) >= s.config.WindowCount || !s.roomFor(len(raw)) {
		s.close(t, gap)
		return
	}
	q := &foldrow.Queued{Step: uint64(e.Step), Seq: uint64(e.Seq), Part: s.number(), Size: uint64(len(raw))}
	s.write(q.Part, raw)
	t.Queue = append(t.Queue, q)
	s.shrink(0)
}

func (m merged) Queued() int { return len(m.t.Queue) }

func (m merged) Next(ready func(topics.AgentEvent) bool) (e topics.AgentEvent, ok bool) {
	s, t := m.s, m.t
	if len(t.Queue) == 0 {
		return e, false
	}
	raw, ok := s.read(t.Queue[0].Part)
	e, err := topics.DecodeAgentEvent(raw)
	switch {
	case !ok || err != nil:
		s.close(t, internalError)
		return e, false
	case !ready(e):
		return e, false
	}
	s.drop(t.Queue[0].Part)
	t.Queue, t.GapMs = t.Queue[1:], s.nowMS()
	return e, true
}
