package turn

import (
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// session is the row of a session at a time. Its methods only read; those of transition change the row.
type session struct {
	row       *turnrow.State
	key       string
	isNew     bool // the session had no row
	now       time.Time
	instant   *string // now as text; nil until it is needed
	due       int64   // timeouts until then are due, in milliseconds since the epoch; 0 for records, which time out nothing
	rules     rules
	delayed   int64     // when an end that is postponed is due again, in milliseconds since the epoch; 0 for none
	spendings spendings // of users and tenants, nil if their budgets are not checked
}

// transition is a session while an event is applied to it.
type transition struct {
	session
	layout    rowLayout
	rowLimit  int // maximum size of the row before divide, in bytes
	oversize  int // the size of the stored row if it exceeded its limit, else 0
	effects   []effect
	changed   bool          // the row must be written
	erased    bool          // the row must be deleted
	purging   bool          // the session ends: no turn begins
	cannotAsk bool          // the turn ends because its caller cannot ask a person
	err       error         // a part could not be read: the outcome is discarded
	settled   *settlement   // of the open step, between its response and its end in the event stream
	replaying *turnrow.Held // the held record that is being applied, nil for the event itself
}

// spendings are the rows of the topic spending.
type spendings interface {
	// of returns the spending of a scope; the zero value if it has none. ok is false if the row cannot be read.
	of(scope string) (spent topics.Spending, ok bool)
}

// settlement is the attempt of an accepted response, and why its model stopped.
type settlement struct {
	attempt topics.AgentAttempt
	stop    string
}

func (s *session) nowMS() int64 { return s.now.UnixMilli() }

// after returns now plus d, in milliseconds since the epoch.
func (s *session) after(d time.Duration) int64 { return s.now.Add(d).UnixMilli() }

// timestamp returns the current time in the format of the records: ISO-8601 in UTC, with milliseconds unless they are 0.
func (s *session) timestamp() *string {
	if s.instant == nil {
		t := topics.Timestamp(s.now)
		s.instant = &t
	}
	return s.instant
}

// unfinished returns the messages that have no output yet, in order of arrival.
func (s *session) unfinished() iter.Seq[*turnrow.Accepted] {
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

// accepted returns the message of an open or waiting turn, nil if the turn is neither.
func (s *session) accepted(turn string) *turnrow.Accepted {
	for a := range s.unfinished() {
		if a.GetTurnId() == turn {
			return a
		}
	}
	return nil
}

// namesTurn reports whether a gate names the turn of a message.
func namesTurn(named string, a *turnrow.Accepted) bool {
	return named == a.GetTurnId() || a.GetRequestId() != "" && named == a.GetRequestId()
}

// user returns the user id for a turn's records: the message's, else that of the last think-response.
func (s *session) user(a *turnrow.Accepted) *string {
	if !blank(a.UserId) {
		return a.UserId
	}
	return s.row.UserId
}

// thinking reports whether a think step is open.
func (s *session) thinking() bool {
	return s.row.Turn != nil && len(s.row.Turn.Calls) == 0 && s.row.Turn.Compaction == nil
}

// compacting reports whether the open turn waits for the compactor.
func (s *session) compacting() bool { return s.row.Turn.GetCompaction() != nil }

// load loads a large field of the row if it is stored in parts that are not loaded. If a part cannot be read, it sets
// s.err, and the outcome of the event is discarded.
func (s *transition) load(i int) {
	f := stateLargeFields(s.row)[i]
	if s.err != nil || !f.hasParts() {
		return
	}
	before := 0
	if s.oversize > 0 {
		before = stateSize(s.row)
	}
	s.rowLimit -= partName * len(*f.parts) // they are named again when the row is written
	if s.err = s.layout.load(s.row, i); s.err == nil && s.oversize > 0 {
		s.oversize -= before - stateSize(s.row)
	}
}

// mostEffects is an initial capacity that suffices for nearly all events.
const mostEffects = 3

func (s *transition) emit(turn string, step uint32, v value, index int) {
	if s.effects == nil {
		s.effects = make([]effect, 0, mostEffects)
	}
	e := emit{Key: s.key, ID: outputID(turn, step, v, index), Value: v}
	switch v := v.(type) {
	case enriched:
		e.DeadlineMS = s.row.Turn.DeadlineMs
		if s.rules.Memoir != nil {
			e.Key = topics.MemoryKey(s.key, v.UserID)
		}
	case compactionRequested:
		e.DeadlineMS = s.row.Turn.DeadlineMs
	case called:
		e.DeadlineMS = callDeadline(s.row.Turn, s.row.Turn.Calls[index])
	}
	s.effects = append(s.effects, e)
}

// deadLetter dead-letters the record that is being applied.
func (s *transition) deadLetter(reason string) {
	if s.replaying != nil {
		s.giveUp(s.replaying, reason)
		return
	}
	s.effects = append(s.effects, deadLetter{Reason: reason})
}

// giveUp dead-letters a held record. A tool's failure that no call claims is dropped instead, because it already is a
// record of a dead-letter topic.
func (s *transition) giveUp(h *turnrow.Held, reason string) {
	s.changed = true
	if !h.Failure {
		s.effects = append(s.effects, deadLetter{Held: proto.CloneOf(h), Reason: reason})
	}
}

func (s *transition) rememberCause(d digest) {
	s.row.Causes = remember(s.row.Causes, d, s.now, s.rules.RememberFor, s.rules.RememberCount)
}

func (s *session) knowsCause(d digest) bool {
	return remembers(s.row.Causes, d, s.now, s.rules.RememberFor)
}

func (s *transition) rememberRequest(id string) {
	d := digests.Of(ofRequest, id)
	s.row.Requests = remember(s.row.Requests, d, s.now, s.rules.RememberFor, s.rules.RememberCount)
}

func (s *session) knowsRequest(id string) bool {
	return remembers(s.row.Requests, digests.Of(ofRequest, id), s.now, s.rules.RememberFor)
}

// rememberCall remembers that a call ended. A call has up to two digests: of its id, and of its result's bytes.
func (s *transition) rememberCall(d digest) {
	s.row.Calls = remember(s.row.Calls, d, s.now, s.rules.RememberFor, 2*s.rules.RememberCount)
}

func (s *session) knowsCall(d digest) bool {
	return remembers(s.row.Calls, d, s.now, s.rules.RememberFor)
}
