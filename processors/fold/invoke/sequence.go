package invoke

import (
	"errors"

	"github.com/turntable-streams/turntable/topics"
)

// sequence orders the records of a turn. It drops repeated records and records of older attempts, and holds records until
// all earlier ones were added. It does no I/O.
type sequence struct {
	attempt int64 // 0: the attempt of the first record
	seq     int64 // seq of the last record that was returned
	held    map[int64]topics.AgentEvent
	bytes   int
	final   int64  // seq of a held terminal record, 0 for none
	resumes bool   // runs that pause can continue after their terminal record
	steps   *steps // of a turn whose steps have writers of their own; nil for others
}

// errGap means that records of a turn are missing.
var errGap = &Error{Code: "gap", Text: "events of the turn are missing"}

// errAttempt means that a record belongs to a newer attempt than the earlier ones.
var errAttempt = errors.New("invoke: a newer attempt")

const (
	heldRecords = 1000
	heldBytes   = 4 << 20
)

// add adds a record and returns the records that are now in order. If it returns errAttempt, the record was not added: call
// restart with its attempt, and add it again.
func (s *sequence) add(e topics.AgentEvent) ([]topics.AgentEvent, error) {
	if e.Step > 0 || s.steps != nil {
		return s.addOfStep(e)
	}
	switch {
	case e.Seq == 0: // a user's record without a number
		return nil, nil
	case s.attempt == 0:
		s.attempt = e.Attempt
	case e.Attempt < s.attempt:
		return nil, nil
	case e.Attempt > s.attempt:
		return nil, errAttempt
	}
	if _, repeated := s.held[e.Seq]; repeated || e.Seq <= s.seq {
		return nil, nil
	}
	if e.Seq > s.seq+1 {
		return nil, s.hold(e)
	}
	ready := []topics.AgentEvent{e}
	s.seq = e.Seq
	for {
		next, ok := s.held[s.seq+1]
		if !ok {
			break
		}
		s.seq++
		delete(s.held, s.seq)
		s.bytes -= sizeOf(next)
		ready = append(ready, next)
	}
	return ready, s.gap()
}

func (s *sequence) hold(e topics.AgentEvent) error {
	if s.held == nil {
		s.held = map[int64]topics.AgentEvent{}
	}
	s.held[e.Seq] = e
	s.bytes += sizeOf(e)
	if e.Result != nil && !(s.resumes && pausesTurn(*e.Result)) {
		s.final = e.Seq
	}
	return s.gap()
}

// eventCost is the estimated memory of an event in addition to its data, in bytes.
const eventCost = 160

// sizeOf returns approximately how many bytes of memory a record uses.
func sizeOf(e topics.AgentEvent) int { return len(e.Event) + len(e.Request) + eventCost }

// gap returns errGap if the sequence cannot wait for the missing records, because the terminal record was received or the
// limits of held records are exceeded.
func (s *sequence) gap() error {
	if s.final > s.seq || len(s.held) > heldRecords || s.bytes > heldBytes {
		return errGap
	}
	return nil
}

// open reports whether records before the held ones are missing.
func (s *sequence) open() bool { return len(s.held) > 0 || s.steps != nil && s.steps.waits() }

// restart begins another attempt.
func (s *sequence) restart(attempt int64) { *s = sequence{attempt: attempt, resumes: s.resumes} }

// pausesTurn reports whether a terminal record can be that of a pause.
func pausesTurn(r topics.AgentResult) bool {
	return r.OK && (r.StopReason == nil || *r.StopReason == stopPaused)
}
