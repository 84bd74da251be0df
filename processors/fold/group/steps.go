package group

import (
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/fold"
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

// seqStepStart is the number of the turn's record that begins a step.
const seqStepStart = 1

// firstStepStart is the event that begins the first step.
const firstStepStart = `{"type":"step_start","data":{"type":"step_start","step":1}}`

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
		s.deadLetter(reasonMixed)
	case e.Author == topics.AuthorTurn:
		s.receiveOfTurn(t, e)
	case e.Result != nil:
		s.deadLetter(reasonWriter)
	default:
		s.receiveOfRun(t, e)
	}
}

// receiveOfRun applies an event of an attempt at a step.
func (s *transition) receiveOfRun(t *Turn, e topics.AgentEvent) {
	step := uint64(e.Step)
	if step < t.Step || step == t.Step && t.Settled {
		return
	}
	if step == 1 && t.Step == 0 { // the turn says so with the first response
		event, err := fold.DecodeEvent([]byte(firstStepStart))
		if t.Step, t.Seen = 1, []uint64{seqStepStart}; err != nil || !s.store(t, event) {
			return
		}
		t.Seq++
		s.changed = true
	}
	run := t.run(step, uint64(e.Attempt))
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
	if s.release(run); s.find(t.Id) != t {
		return
	}
	if step == t.Step {
		s.show(t)
	}
	s.advance(t)
}

// run returns an attempt at a step; nil if there is none.
func (t *Turn) run(step, attempt uint64) *Turn {
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
func (s *transition) beginRun(t *Turn, step, attempt uint64) *Turn {
	if len(t.Runs) >= maxRuns {
		others := slices.DeleteFunc(slices.Clone(t.Runs), func(run *Turn) bool {
			return run.Attempt == ownAttempt || run.Step == t.Step && run.Attempt == t.Shown || s.isNamed(t, run)
		})
		if len(others) == 0 {
			return nil
		}
		s.dropRun(t, slices.MinFunc(others, func(a, b *Turn) int { return cmp.Compare(a.Attempt, b.Attempt) }))
	}
	run := &Turn{Stepped: true, Step: step, Attempt: attempt}
	t.Runs = append(t.Runs, run)
	return run
}

// isNamed reports whether a record of the turn that waits names the attempt as that of its step.
func (s *transition) isNamed(t, run *Turn) bool {
	return slices.ContainsFunc(t.Queue, func(q *Queued) bool {
		if q.Step != run.Step {
			return false
		}
		raw, _ := s.read(q.Part)
		e, err := topics.DecodeAgentEvent(raw)
		return err == nil && e.Settles != nil && uint64(e.Settles.Attempt) == run.Attempt
	})
}

func (s *transition) dropRun(t, run *Turn) {
	s.dropEvents(run)
	t.Runs = slices.DeleteFunc(t.Runs, func(o *Turn) bool { return o == run })
}

// ownerOf returns the open turn of an attempt; a turn is its own.
func (s *transition) ownerOf(t *Turn) *Turn {
	for _, o := range s.row.Open {
		if slices.Contains(o.Runs, t) {
			return o
		}
	}
	return t
}

// show chooses the attempt whose events are part of the turn while the open step is not settled: the greatest.
func (s *transition) show(t *Turn) {
	greatest := t.Shown
	for _, run := range t.Runs {
		if run.Step == t.Step && run.Seq > 0 {
			greatest = max(greatest, run.Attempt)
		}
	}
	s.replace(t, greatest)
}

// replace replaces the attempt whose events are part of the turn.
func (s *transition) replace(t *Turn, attempt uint64) {
	if t.Shown != 0 && t.Shown != attempt {
		t.Attempt++ // readers have events that are void now
	}
	t.Shown = attempt
}

// receiveOfTurn applies a record of the turn itself, or keeps it until it can be applied.
func (s *transition) receiveOfTurn(t *Turn, e topics.AgentEvent) {
	step, seq := uint64(e.Step), uint64(e.Seq)
	known := step < t.Step || step == t.Step && slices.Contains(t.Seen, seq)
	if known && seq == seqStepStart && step == t.Step && e.UntilMS > t.UntilMs { // also one whose clock a gate has stopped
		t.UntilMs, s.changed = e.UntilMS, true
	}
	if known && e.Result == nil || slices.ContainsFunc(t.Queue, func(q *Queued) bool { return q.Step == step && q.Seq == seq }) {
		return
	}
	s.changed, t.TouchedMs, t.UntilMs = true, s.nowMS(), e.UntilMS
	if len(t.Queue) == 0 && s.ready(t, e) {
		s.applyOfTurn(t, e)
		s.advance(t)
		return
	}
	if len(t.Queue) == 0 {
		t.GapMs = s.nowMS()
	}
	raw := topics.EncodeAgentEvent(e)
	if len(t.Queue) >= s.rules.WindowCount || !s.roomFor(len(raw)) {
		s.close(t, gap)
		return
	}
	q := &Queued{Step: step, Seq: seq, Part: s.number(), Size: uint64(len(raw))}
	s.write(q.Part, raw)
	t.Queue = append(t.Queue, q)
	s.shrink(0)
}

// advance applies the turn's records that have waited, as far as they can be applied now.
func (s *transition) advance(t *Turn) {
	for s.find(t.Id) == t && len(t.Queue) > 0 {
		q := t.Queue[0]
		raw, ok := s.read(q.Part)
		if !ok {
			s.close(t, internalError)
			return
		}
		e, err := topics.DecodeAgentEvent(raw)
		if err != nil {
			s.close(t, internalError)
			return
		}
		if !s.ready(t, e) {
			return
		}
		s.drop(q.Part)
		t.Queue, t.GapMs = t.Queue[1:], s.nowMS()
		s.applyOfTurn(t, e)
	}
}

// ready reports whether a record of the turn can be applied: its step has begun, and the events before it were received.
func (s *transition) ready(t *Turn, e topics.AgentEvent) bool {
	step := uint64(e.Step)
	switch {
	case e.Settles != nil && (step != t.Step || !t.Settled):
		run := t.run(step, uint64(e.Settles.Attempt))
		return e.Settles.Seq == 0 || run != nil && run.Seq >= uint64(e.Settles.Seq)
	case e.Result != nil:
		return true
	case e.Seq == seqStepStart:
		return step == t.Step+1
	default:
		return step == t.Step && t.Settled
	}
}

// applyOfTurn applies a record of the turn.
func (s *transition) applyOfTurn(t *Turn, e topics.AgentEvent) {
	if e.Settles != nil && !t.Settled {
		s.settle(t, uint64(e.Step), uint64(e.Settles.Attempt))
	}
	if e.Result != nil {
		if !t.Settled {
			s.keepShown(t)
		}
		t.Seq++
		s.close(t, byResult(*e.Result))
		return
	}
	if e.Seq == seqStepStart {
		s.keepShown(t)
		t.Step, t.Settled, t.Shown, t.Seen = uint64(e.Step), false, 0, nil
		s.dropRuns(t, func(run *Turn) bool { return run.Step < t.Step })
	}
	t.Seen = append(t.Seen, uint64(e.Seq))
	if event, err := fold.DecodeEvent([]byte(e.Event)); err == nil && !s.store(t, event) {
		return
	}
	if t.Seq++; e.Seq == seqStepStart {
		s.show(t)
	}
}

// settle makes the events of an attempt those of its step, and drops the other attempts at it.
func (s *transition) settle(t *Turn, step, attempt uint64) {
	if t.Step != step { // the record that began the step is missing
		t.Step, t.Shown = step, 0
	}
	s.replace(t, attempt)
	s.keepShown(t)
}

// keepShown settles the open step: the events of its shown attempt become those of the turn.
func (s *transition) keepShown(t *Turn) {
	if !t.Stepped || t.Settled {
		return
	}
	t.Settled = true
	if run := t.run(t.Step, t.Shown); run != nil {
		if len(t.Tail) > 0 {
			s.flushTail(t)
		}
		t.Parts, t.PartsSize, t.Tail = append(t.Parts, run.Parts...), t.PartsSize+run.PartsSize, run.Tail
		t.Seq, t.Refused = t.Seq+run.Seq, t.Refused+run.Refused
		run.Parts, run.PartsSize, run.Tail = nil, 0, nil
	}
	s.dropRuns(t, func(run *Turn) bool { return run.Step <= t.Step })
}

func (s *transition) dropRuns(t *Turn, which func(*Turn) bool) {
	for _, run := range slices.Clone(t.Runs) {
		if which(run) {
			s.dropRun(t, run)
		}
	}
}
