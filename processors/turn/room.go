package turn

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// If the row of a session would exceed Config.RowLimit, the following is given up in this order, each kind entirely before the
// next and no more than needed. There are two phases. First, shrink drops 1. If 2 to 6 together make enough room, it gives them up,
// and the event is applied. Otherwise it keeps 2 to 6, and the rule that needs the room goes on with 7 to 12.
//
//  1. Memories that are older than Config.RememberFor.
//  2. Hidden exchanges, the oldest first (historylimit.go). With Config.Memoir all of them, which go to the memory.
//  3. Older memories of applied records and of ended calls, down to the newest recentMemories of each. A redelivered
//     record, or a late result of a call, is at most that old unless an operator resets offsets.
//  4. The message that the open step sent to the model. The history of a worker that leaves it out of its response then
//     lacks it.
//  5. Held records, those for later steps first, the newest first: dead-lettered. Their steps and calls time out.
//  6. Waiting messages, the newest first, results of delegations last: error output queue_full. A message that is about to
//     wait displaces no other.
//  7. Exchanges of earlier turns, the oldest first: the model is no longer sent them.
//  8. The result of a tool that has just arrived: the model is told that it is too large.
//  9. Calls that wait for approval, those with the largest arguments first: they end in too_large errors, and their gates
//     are withdrawn.
// 10. The open turn: error output too_large, its open calls end with it. The history stays as it was before it, except for
//     the exchanges that were hidden meanwhile.
// 11. The remaining memories of ended calls. No turn is open that a late result could reach.
// 12. The record itself: dead-lettered and not remembered, a message with an error output. The row stays as it was.
//
// A reply route or a record that arrives early displaces only hidden exchanges, memories and that message (1 to 4). The
// history is shortened only when a turn begins, and when a response or a result arrives: a model that is at work repeats
// the history that it was sent.
//
// Cost, open routes, closed think steps, the newest applied records, and the request IDs of the last
// Config.RememberFor are never given up: a forgotten request ID could open a second turn for its request.
//
// A stored row can exceed its limit if the limit was lowered. The next event of the session then ends the open turn and
// the waiting messages, unless that event makes the row fit; the row is written if it has not grown. After a deadline it
// is always written: otherwise every restart would repeat the deadline's outputs.

// recentMemories is how many memories of a kind are kept as long as possible.
const recentMemories = 128

// loss is the last kind, in the order above, that may be given up.
type loss int

const (
	memories loss = iota
	heldRecords
	waitingMessages
)

// rowReserve is the space in bytes for what every event adds to the row: memories, a deadline.
const rowReserve = 256

// makeRoom gives up hidden exchanges, memories, held records and waiting messages until the row fits. If that would not be
// enough, it gives up only expired memories and reports false.
func (s *transition) makeRoom() bool { return s.makeRoomUpTo(waitingMessages) }

func (s *transition) makeRoomUpTo(most loss) bool {
	return s.shrink(s.rowLimit-rowReserve, most)
}

// makeRoomInHistory is makeRoom for a turn that would end otherwise: it hides exchanges, too.
func (s *transition) makeRoomInHistory(entirely bool) bool {
	if s.makeRoom() {
		return true
	}
	over := stateSize(s.row) - s.givable(waitingMessages) - (s.rowLimit - rowReserve)
	return over > 0 && s.hideFor(over, entirely) && s.makeRoom()
}

// shrink gives up what most permits until the row has at most limit bytes. It reports whether the row fits.
func (s *transition) shrink(limit int, most loss) bool {
	if within(s.row, limit) {
		return true
	}
	s.forgetExpired()
	if stateSize(s.row)-s.givable(most) > limit {
		return false
	}
	for !within(s.row, limit) {
		switch waiting := s.row.Waiting; {
		case s.purgeHidden():
		case s.forgetOlder():
		case s.forgetPrompt():
		case most >= heldRecords && s.dropHeld():
		case most >= waitingMessages && len(waiting) > 0:
			s.stopWaiting(lastToGive(s.row))
		default:
			return false
		}
	}
	return true
}

// givable returns how many bytes shrink can give up.
func (s *session) givable(most loss) (bytes int) {
	bytes = hiddenSize(s.row)
	for _, memory := range [][]byte{s.row.Causes, s.row.Calls} {
		bytes += max(0, len(memory)-recentMemories*memorySize)
	}
	if n := len(s.row.Turn.GetPrompt()); n > 0 {
		bytes += longTag + protowire.SizeBytes(n)
	}
	for _, p := range s.row.Turn.GetPromptParts() {
		bytes += longTag + protowire.SizeBytes(proto.Size(p)) + int(p.Length)
	}
	if most >= heldRecords {
		for _, h := range s.row.Turn.GetHeld() {
			bytes += sizeInList(h)
		}
		for _, h := range s.row.Early {
			bytes += longTag + protowire.SizeBytes(proto.Size(h))
		}
	}
	if most >= waitingMessages {
		for _, a := range s.row.Waiting {
			bytes += sizeInList(a) - memorySize // its turn is remembered as ended
		}
	}
	return bytes
}

// sizeInList returns the size of a message as a list element of a row, with tag and length prefix.
func sizeInList(m proto.Message) int { return 1 + protowire.SizeBytes(proto.Size(m)) }

// longTag is the size of the tag of a field whose number is above 15.
const longTag = 2

// forgetPrompt drops the message of the open step. It reports whether there was one.
func (s *transition) forgetPrompt() bool {
	turn := s.row.Turn
	if len(turn.GetPrompt())+len(turn.GetPromptParts()) == 0 {
		return false
	}
	turn.Prompt, turn.PromptParts = nil, nil
	return true
}

// forgetExpired drops the memories that have expired.
func (s *transition) forgetExpired() {
	for _, memory := range []*[]byte{&s.row.Causes, &s.row.Requests, &s.row.Calls} {
		for len(*memory) >= memorySize && isForgotten(*memory, s.now, s.rules.RememberFor) {
			*memory = (*memory)[memorySize:]
		}
	}
}

// forgetOlder drops the older half of the memories that may be given up. It reports whether there were any.
func (s *transition) forgetOlder() bool {
	before := len(s.row.Causes) + len(s.row.Calls)
	s.row.Causes = forgetHalf(s.row.Causes, recentMemories)
	s.row.Calls = forgetHalf(s.row.Calls, recentMemories)
	return len(s.row.Causes)+len(s.row.Calls) < before
}
