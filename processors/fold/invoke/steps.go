package invoke

import (
	"errors"

	"github.com/turntable-streams/turntable/topics"
)

// steps orders the records of a turn whose steps have writers of their own, by the rules of the fold group: see package
// fold/group. It numbers the events of the turn in one sequence. If an attempt at a step takes the place of another one that
// was shown before, the turn is read again from its first record, with the other attempt: chosen knows it. Then attempt is
// greater. Readers of the same records get the same numbers. It does no I/O.
type steps struct {
	attempt int64 // how often events were replaced, from 1
	seq     int64 // number of the last event

	step    int64               // that has begun, 0 for none
	settled bool                // its attempt is known, and its events were returned
	seen    map[int64]bool      // the numbers of the turn's records in the step
	shown   int64               // the attempt at the step whose events are returned; 0 for none
	runs    map[runID]*run      // the attempts at the step and at later ones
	queue   []topics.AgentEvent // the turn's records that wait for events
	chosen  map[int64]choice
	ended   bool // the terminal record was returned
	records int  // that are kept, and their size
	bytes   int
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
func (m *steps) waits() bool { return len(m.queue) > 0 || m.step == 0 && len(m.runs) > 0 }

// add adds a record and returns the events that follow in the turn.
func (m *steps) add(e topics.AgentEvent) (ready []topics.AgentEvent, err error) {
	if m.ended {
		return nil, nil
	}
	if m.runs == nil {
		m.runs, m.seen = map[runID]*run{}, map[int64]bool{}
	}
	if e.IfBegun && !m.begun() {
		return nil, nil
	}
	if e.Author == "" && e.Step == 1 && !m.begun() { // the turn says so with the first response
		start := e
		start.Author, start.Request, start.Event = topics.AuthorTurn, nil, topics.Raw(firstStepStart)
		m.step, m.seen[seqStepStart] = 1, true
		ready = append(ready, m.numbered(start))
	}
	if e.Author == topics.AuthorTurn {
		m.receive(e)
	} else if e.Result == nil && e.Seq > 0 && !m.receiveOfRun(e) {
		return ready, nil
	}
	if ready, err = m.show(ready); err != nil {
		return nil, m.restart()
	}
	for !m.ended && len(m.queue) > 0 && m.ready(m.queue[0]) {
		next := m.queue[0]
		m.queue = m.queue[1:]
		m.count(next, -1)
		if ready, err = m.apply(next, ready); err != nil {
			return nil, m.restart()
		}
	}
	return ready, nil
}

// begun reports whether the first step has begun.
func (m *steps) begun() bool { return m.step > 0 }

func (m *steps) restart() error {
	*m = steps{attempt: m.attempt + 1, chosen: m.chosen}
	return errReplaced
}

func (m *steps) count(e topics.AgentEvent, n int) {
	m.records += n
	m.bytes += n * sizeOf(e)
}

// receive queues a record of the turn, unless it is known.
func (m *steps) receive(e topics.AgentEvent) {
	if known := e.Step < m.step || e.Step == m.step && m.seen[e.Seq]; known && e.Result == nil {
		return
	}
	for _, q := range m.queue {
		if q.Step == e.Step && q.Seq == e.Seq {
			return
		}
	}
	m.queue = append(m.queue, e)
	m.count(e, 1)
}

// receiveOfRun keeps a record of an attempt. It returns false if its events do not count. Those of an attempt before the shown
// one are not kept: if it settles the step, the turn is read again.
func (m *steps) receiveOfRun(e topics.AgentEvent) bool {
	c := m.chosen[e.Step]
	if e.Step < m.step || e.Step == m.step && (m.settled || e.Attempt < m.shown) ||
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

// show returns the new events of the shown attempt at the step: until it is settled, the greatest.
func (m *steps) show(ready []topics.AgentEvent) ([]topics.AgentEvent, error) {
	if m.settled || m.step == 0 {
		return ready, nil
	}
	greatest := m.shown
	for id, r := range m.runs {
		if id.step == m.step && r.seq > 0 {
			greatest = max(greatest, id.attempt)
		}
	}
	return m.release(choice{attempt: greatest}, ready)
}

// release makes an attempt the shown one and returns its new events. It fails if events of another attempt were returned.
func (m *steps) release(c choice, ready []topics.AgentEvent) ([]topics.AgentEvent, error) {
	if before := m.runs[runID{m.step, m.shown}]; before != nil && m.shown != c.attempt && before.released > 0 {
		m.chosen[m.step] = c
		return nil, errReplaced
	}
	m.shown = c.attempt
	r := m.runs[runID{m.step, m.shown}]
	for r != nil && r.released < r.seq {
		r.released++
		e := r.kept[r.released]
		delete(r.kept, r.released)
		m.count(e, -1)
		ready = append(ready, m.numbered(e))
	}
	return ready, nil
}

// numbered returns a record with its number in the turn.
func (m *steps) numbered(e topics.AgentEvent) topics.AgentEvent {
	m.seq++
	e.Attempt, e.Seq = m.attempt, m.seq
	return e
}

// seqStepStart is the number of the turn's record that begins a step.
const seqStepStart = 1

// firstStepStart is the event that begins the first step.
const firstStepStart = `{"type":"step_start","data":{"type":"step_start","step":1}}`

// ready reports whether a record of the turn can be applied: its step has begun, and the events before it were received.
func (m *steps) ready(e topics.AgentEvent) bool {
	switch {
	case e.Settles != nil && (e.Step != m.step || !m.settled):
		r := m.runs[runID{e.Step, e.Settles.Attempt}]
		if r != nil && r.seq >= e.Settles.Seq || e.Settles.Seq == 0 {
			return true
		}
		// It may have been left out because of another attempt.
		c := m.chosen[e.Step]
		return c.attempt > e.Settles.Attempt && !c.settled || e.Step == m.step && m.shown > e.Settles.Attempt
	case e.Result != nil:
		return true
	case e.Seq == seqStepStart:
		return e.Step == m.step+1
	default:
		return e.Step == m.step && m.settled
	}
}

// apply applies a record of the turn.
func (m *steps) apply(e topics.AgentEvent, ready []topics.AgentEvent) ([]topics.AgentEvent, error) {
	if e.Settles != nil && !m.settled {
		c := choice{attempt: e.Settles.Attempt, settled: true}
		if m.step != e.Step { // the record that began the step is missing
			m.step, m.shown = e.Step, 0
		}
		if before := m.chosen[e.Step]; before.attempt > c.attempt && !before.settled && e.Settles.Seq > 0 {
			m.chosen[e.Step] = c
			return nil, errReplaced
		}
		var err error
		if ready, err = m.release(c, ready); err != nil {
			return nil, err
		}
		m.settle()
	}
	if e.Seq == seqStepStart && e.Result == nil {
		m.settle()
		m.step, m.settled, m.shown, m.seen = e.Step, false, 0, map[int64]bool{}
	}
	m.seen[e.Seq], m.ended = true, e.Result != nil
	ready = append(ready, m.numbered(e))
	if m.ended {
		return ready, nil
	}
	return m.show(ready)
}

// settle drops the attempts at the step: no more of their events count.
func (m *steps) settle() {
	m.settled = true
	for id, r := range m.runs {
		if id.step <= m.step {
			for _, e := range r.kept {
				m.count(e, -1)
			}
			delete(m.runs, id)
		}
	}
}
