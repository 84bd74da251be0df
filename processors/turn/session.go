package turn

import (
	"iter"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// transition is a row while an event is applied to it.
type transition struct {
	row       *turnrow.State
	layout    rowLayout
	rowLimit  int   // maximum size of the row before divide, in bytes
	oversize  int   // the size of the stored row if it exceeded its limit, else 0
	delayed   int64 // when the deadlines that are postponed are due again, in milliseconds since the epoch; 0 for none
	key       string
	isNew     bool // the session had no row
	now       time.Time
	rules     rules
	effects   []Effect
	changed   bool    // the row must be written
	erased    bool    // the row must be deleted
	purging   bool    // the session ends: no turn begins
	cannotAsk bool    // the turn ends because its caller cannot ask a person
	err       error   // a part could not be read: the outcome is discarded
	instant   *string // now as text; nil until it is needed

	spendings spendings // of users and tenants, nil if their budgets are not checked

	settled *settlement // of the open step, between its response and its end in the event stream

	replaying *turnrow.Held // the held record that is being applied, nil for the event itself
}

func (s *transition) nowMS() int64 { return s.now.UnixMilli() }

// after returns now plus d, in milliseconds since the epoch.
func (s *transition) after(d time.Duration) int64 { return s.now.Add(d).UnixMilli() }

// timestamp returns the current time in the format of the records: ISO-8601 in UTC, with milliseconds unless they are 0.
func (s *transition) timestamp() *string {
	if s.instant == nil {
		t := topics.Timestamp(s.now)
		s.instant = &t
	}
	return s.instant
}

// thinking reports whether a think step is open.
func (s *transition) thinking() bool {
	return s.row.Turn != nil && len(s.row.Turn.Calls) == 0 && s.row.Turn.Compaction == nil
}

// compacting reports whether the open turn waits for the compactor.
func (s *transition) compacting() bool { return s.row.Turn.GetCompaction() != nil }

// user returns the user id for a turn's records: the message's, else that of the last think-response.
func (s *transition) user(a *turnrow.Accepted) *string {
	if !blank(a.UserId) {
		return a.UserId
	}
	return s.row.UserId
}

// unfinished returns the messages that have no output yet, in order of arrival.
func (s *transition) unfinished() iter.Seq[*turnrow.Accepted] {
	return func(yield func(*turnrow.Accepted) bool) {
		if s.row.Turn != nil && !yield(s.row.Turn.Message) {
			return
		}
		for _, a := range s.row.Waiting {
			if !yield(a) {
				return
			}
		}
	}
}

// namesTurn reports whether a gate names the turn of a message.
func namesTurn(named string, a *turnrow.Accepted) bool {
	return named == a.GetTurnId() || a.GetRequestId() != "" && named == a.GetRequestId()
}

// accepted returns the message of an open or waiting turn, nil if the turn is neither.
func (s *transition) accepted(turn string) *turnrow.Accepted {
	for a := range s.unfinished() {
		if a.GetTurnId() == turn {
			return a
		}
	}
	return nil
}
