package invoke

import (
	"errors"

	"github.com/turntable-streams/turntable/topics"
)

// sequence puts the records of a turn in order: repeats and records of older attempts are dropped, records that came
// early are held until those before them have come. It is pure.
type sequence struct {
	attempt int64 // 0: that of the first record
	seq     int64 // of the last record that was let through
	held    map[int64]topics.AgentEvent
	bytes   int
	final   int64 // seq of a terminal record that is held, 0 for none
}

// errGap says that records of a turn are missing.
var errGap = &Error{Code: "gap", Text: "events of the turn are missing"}

// errAttempt says that a record belongs to a newer attempt than those before it.
var errAttempt = errors.New("invoke: a newer attempt")

const (
	heldRecords = 1000
	heldBytes   = 4 << 20
)

// add takes the next record and returns those that are in order now. With errAttempt the record is not taken: restart
// at its attempt, and add it again.
func (s *sequence) add(e topics.AgentEvent) ([]topics.AgentEvent, error) {
	switch {
	case e.Seq == 0: // a user's record, outside of the numbering
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
	if e.Result != nil {
		s.final = e.Seq
	}
	return s.gap()
}

// sizeOf is how many bytes a record keeps in memory, or nearly so.
func sizeOf(e topics.AgentEvent) int { return len(e.Event) + len(e.Request) + eventCost }

// gap is errGap where what is missing cannot be waited for: at the terminal record, or with a full window.
func (s *sequence) gap() error {
	if s.final > s.seq || len(s.held) > heldRecords || s.bytes > heldBytes {
		return errGap
	}
	return nil
}

// open reports whether records are missing before those that are held.
func (s *sequence) open() bool { return len(s.held) > 0 }

// restart begins another attempt.
func (s *sequence) restart(attempt int64) { *s = sequence{attempt: attempt} }
