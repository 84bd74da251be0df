package invoke

import (
	"errors"
	"math"
	"slices"

	"github.com/turntable-streams/turntable/processors/fold/internal/merge"
	"github.com/turntable-streams/turntable/topics"
)

// steps orders the records of a turn whose steps have writers of their own, by the rules of package merge. It numbers the events of the turn in one sequence. If an attempt at a step takes the place of another one that
// was shown before, the turn is read again from its first record, with the other attempt: chosen knows it. Then attempt is
// greater. Readers of the same records get the same numbers. It does no I/O.
type steps struct {
	attempt int64 // how often events were replaced, from 1
	seq     int64 // number of the last event

	merge.Place
	seen    map[int64]bool      // the numbers of the turn's records in the step
	runs    map[runID]*run      // the attempts at the step and at later ones
	queue   []topics.AgentEvent // the turn's records that wait for events
	chosen  map[int64]choice
	ended   bool // the terminal record was returned
	records int  // that are kept, and their size
	bytes   int

	ready    []topics.AgentEvent // the events that follow in the turn, while a record is added
	replaced bool                // events that were returned are void
}

type runID struct{ step, attempt int64 }

// run is an attempt at a step.
type run struct {
	seq      int64 // of the last record without a gap before it
	released int64 // of the last record that was returned
	kept     map[int64]topics.AgentEvent
}

// choice is the attempt at a step that was shown when the turn was read again: it, or a greater one until the step is settled.
type choice struct {
	attempt int64
	settled bool
}

// errReplaced means that events that were returned are void. Add all records of the turn again, from the first one.
var errReplaced = errors.New("invoke: events were replaced")

// addOfStep adds a record of a turn whose steps have writers of their own. The events are numbered as those of the turn. Those of
// attempts before s.attempt are left out.
func (s *sequence) addOfStep(e topics.AgentEvent) ([]topics.AgentEvent, error) {
	if s.steps == nil {
		s.steps = &steps{attempt: 1, chosen: map[int64]choice{}}
	}
	ready, err := s.steps.add(e)
	switch {
	case err != nil:
		s.seq = 0
		return nil, err
	case s.steps.attempt < s.attempt:
		ready = nil
	default:
		s.attempt, s.seq = s.steps.attempt, s.steps.seq
	}
	if s.steps.records > heldRecords || s.steps.bytes > heldBytes {
		err = errGap
	}
	return ready, err
}

// supersedes reports whether events that were returned are void: they were those of the attempt at the turn from which the client
// wants events, or of a later one.
func (s *sequence) supersedes() bool { return s.steps.attempt > s.attempt }

// waits reports whether records before the kept ones are missing.
func (m *steps) waits() bool { return len(m.queue) > 0 || m.Step == 0 && len(m.runs) > 0 }

// add adds a record and returns the events that follow in the turn.
func (m *steps) add(e topics.AgentEvent) ([]topics.AgentEvent, error) {
	if m.ended || e.IfBegun && !m.begun() {
		return nil, nil
	}
	if m.runs == nil {
		m.runs, m.seen = map[runID]*run{}, map[int64]bool{}
	}
	m.ready = nil
	merge.Begin(m, e)
	switch {
	case e.Author == topics.AuthorTurn:
		if !m.has(e) {
			merge.Receive(m, e)
		}
	case e.Result == nil && e.Seq > 0 && m.receiveOfRun(e):
		merge.Continue(m)
	}
	if m.replaced {
		*m = steps{attempt: m.attempt + 1, chosen: m.chosen}
		return nil, errReplaced
	}
	return m.ready, nil
}

// begun reports whether the first step has begun.
func (m *steps) begun() bool { return m.Step > 0 }

func (m *steps) count(e topics.AgentEvent, n int) {
	m.records += n
	m.bytes += n * sizeOf(e)
}

// has reports whether a record of the turn was added before.
func (m *steps) has(e topics.AgentEvent) bool {
	if known := e.Step < m.Step || e.Step == m.Step && m.seen[e.Seq]; known && e.Result == nil {
		return true
	}
	return slices.ContainsFunc(m.queue, func(q topics.AgentEvent) bool { return q.Step == e.Step && q.Seq == e.Seq })
}

// receiveOfRun keeps a record of an attempt. It returns false if its events do not count. Those of an attempt before the shown
// one are not kept: if it settles the step, the turn is read again.
func (m *steps) receiveOfRun(e topics.AgentEvent) bool {
	c := m.chosen[e.Step]
	if e.Step < m.Step || e.Step == m.Step && (m.Settled || e.Attempt < m.Shown) ||
		e.Attempt < c.attempt || c.settled && e.Attempt != c.attempt {
		return false
	}
	id := runID{e.Step, e.Attempt}
	r := m.runs[id]
	if r == nil {
		r = &run{kept: map[int64]topics.AgentEvent{}}
		m.runs[id] = r
	}
	if _, repeated := r.kept[e.Seq]; repeated || e.Seq <= r.seq {
		return false
	}
	r.kept[e.Seq] = e
	m.count(e, 1)
	for _, ok := r.kept[r.seq+1]; ok; _, ok = r.kept[r.seq+1] {
		r.seq++
	}
	return true
}

// At, and the methods after it, implement merge.Turn.
func (m *steps) At() merge.Place { return m.Place }

func (m *steps) Move(to merge.Place) {
	if to.Step != m.Step {
		m.seen = map[int64]bool{}
	}
	m.Place = to
}

// Received returns a number above all for an attempt whose records may have been left out because of another one.
func (m *steps) Received(step, attempt int64) int64 {
	c := m.chosen[step]
	if c.attempt > attempt && !c.settled || step == m.Step && m.Shown > attempt {
		return math.MaxInt64
	}
	if r := m.runs[runID{step, attempt}]; r != nil {
		return r.seq
	}
	return 0
}

func (m *steps) Greatest() (attempt int64) {
	for id, r := range m.runs {
		if id.step == m.Step && r.seq > 0 {
			attempt = max(attempt, id.attempt)
		}
	}
	return attempt
}

// Show returns the new events of an attempt. If events of another attempt were returned, or left out of this one, the turn is read
// again.
func (m *steps) Show(attempt int64, settles *topics.AgentAttempt) bool {
	before, chosen := m.runs[runID{m.Step, m.Shown}], m.chosen[m.Step]
	m.replaced = before != nil && m.Shown != attempt && before.released > 0 ||
		settles != nil && settles.Seq > 0 && chosen.attempt > attempt && !chosen.settled
	if m.replaced {
		m.chosen[m.Step] = choice{attempt: attempt, settled: settles != nil}
		return false
	}
	r := m.runs[runID{m.Step, attempt}]
	for r != nil && r.released < r.seq {
		r.released++
		e := r.kept[r.released]
		delete(r.kept, r.released)
		m.count(e, -1)
		m.number(e)
	}
	return true
}

func (m *steps) Settle() {
	for id, r := range m.runs {
		if id.step <= m.Step {
			for _, e := range r.kept {
				m.count(e, -1)
			}
			delete(m.runs, id)
		}
	}
}

func (m *steps) Add(e topics.AgentEvent) bool {
	m.seen[e.Seq], m.ended = true, e.Result != nil
	m.number(e)
	return !m.ended
}

// number returns a record with its number in the turn.
func (m *steps) number(e topics.AgentEvent) {
	m.seq++
	e.Attempt, e.Seq = m.attempt, m.seq
	m.ready = append(m.ready, e)
}

func (m *steps) Wait(e topics.AgentEvent) {
	m.queue = append(m.queue, e)
	m.count(e, 1)
}

func (m *steps) Queued() int { return len(m.queue) }

func (m *steps) Next(ready func(topics.AgentEvent) bool) (e topics.AgentEvent, ok bool) {
	if len(m.queue) == 0 || !ready(m.queue[0]) {
		return e, false
	}
	e, m.queue = m.queue[0], m.queue[1:]
	m.count(e, -1)
	return e, true
}
