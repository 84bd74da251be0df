package turn

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// A session has one open turn. Messages that arrive meanwhile wait in the row, in the order of their arrival (message.go). A turn
// that closes opens that of the first one (turn.go).

// mayWait reports whether a message can be added to those that wait, and why not. Results of delegations always can.
func (s *session) mayWait(a *turnrow.Accepted) (why failure, ok bool) {
	switch n := stateWaitingMessages(s.row); {
	case a.Result:
		return failure{}, true
	case s.rules.Policy == Reject:
		return failure{topics.CodeBusy, "another message of this session is being answered"}, false
	case n >= s.rules.QueueLimit:
		return queueFull(fmt.Sprintf("%d messages of this session wait already", n)), false
	}
	return failure{}, true
}

// stateWaitingMessages returns how many messages wait that are not results of delegations.
func stateWaitingMessages(s *turnrow.State) (n int) {
	for _, a := range s.Waiting {
		if !a.Result {
			n++
		}
	}
	return n
}

// takeWaiting removes and returns the first waiting message. It returns nil if none waits, or the session is being purged.
func (s *transition) takeWaiting() *turnrow.Accepted {
	if len(s.row.Waiting) == 0 || s.purging {
		return nil
	}
	first := s.row.Waiting[0]
	s.row.Waiting = s.row.Waiting[1:]
	return first
}

// stopWaiting ends a waiting message with a queue_full error.
func (s *transition) stopWaiting(a *turnrow.Accepted) {
	s.row.Waiting = slices.DeleteFunc(s.row.Waiting, func(w *turnrow.Accepted) bool { return w == a })
	s.reject(a, queueFull("no room for a waiting message"))
}

func queueFull(text string) failure { return failure{topics.CodeQueueFull, text} }

// lastToGive returns the waiting message that is given up first for lack of room: the newest, but a result only when no other
// message waits. There must be one.
func lastToGive(s *turnrow.State) *turnrow.Accepted {
	for _, a := range slices.Backward(s.Waiting) {
		if !a.Result {
			return a
		}
	}
	return s.Waiting[len(s.Waiting)-1]
}

// namesWaiting reports whether d is the digest of a message that waits for its turn.
func (s *session) namesWaiting(d digest) bool {
	for _, a := range s.row.Waiting {
		if m, err := topics.DecodeMessage(a.Input); err == nil && inputDigest(m) == d {
			return true
		}
	}
	return false
}
