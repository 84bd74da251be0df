package turn

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
)

// What a session remembers of its past is kept as digests with the time they were taken, packed end to end in one byte
// field a kind: a thousand of them cost one allocation to read, not a thousand.
const (
	digestSize = digests.Size
	memorySize = digestSize + 8
)

type digest = digests.Digest

// The domains of digests: equal texts of different domains have different digests.
const (
	ofTurn     = "turn"
	ofCause    = "cause"
	ofRequest  = "request"
	ofResponse = "response"
	ofCall     = "call"
	ofResult   = "result"
	ofFailure  = "failure"
)

// turnID names the turn of the message that a cause brought (R20).
func turnID(session, cause string) string {
	d := digests.Of(ofTurn, session, cause)
	var text [2 * digestSize]byte
	return string(hex.AppendEncode(text[:0], d[:]))
}

// remember appends a digest and drops what is too old or too much.
func remember(memory []byte, d digest, now time.Time, keep time.Duration, count int) []byte {
	memory = append(withRoom(memory, memorySize), d[:]...)
	memory = binary.BigEndian.AppendUint64(memory, uint64(now.UnixMilli()))
	for len(memory) >= memorySize && (len(memory) > count*memorySize || forgotten(memory, now, keep)) {
		memory = memory[memorySize:]
	}
	return memory
}

// withRoom is a list of entries with room for one more. A list that must move gets room for several, and not for a
// quarter of it as append would give: the room is kept in memory with the list.
func withRoom(list []byte, entry int) []byte {
	if cap(list)-len(list) >= entry {
		return list
	}
	return append(roomFor(len(list), entry), list...)
}

// roomFor is memory for a list of that length. Its capacity is all that the allocator gives, which what is kept counts.
func roomFor(length, entry int) []byte {
	return slices.Grow([]byte(nil), length+max(16*entry, length/16))
}

// remembers reports whether a digest is in memory and not too old.
func remembers(memory []byte, d digest, now time.Time, keep time.Duration) bool {
	front := binary.NativeEndian.Uint64(d[:]) // tells nearly all others apart: thousands are looked at with every event
	for ; len(memory) >= memorySize; memory = memory[memorySize:] {
		if binary.NativeEndian.Uint64(memory) == front && digest(memory[:digestSize]) == d &&
			!forgotten(memory, now, keep) {
			return true
		}
	}
	return false
}

// forgotten reports whether the first digest in memory is too old.
func forgotten(memory []byte, now time.Time, keep time.Duration) bool {
	at := int64(binary.BigEndian.Uint64(memory[digestSize:]))
	return at <= now.Add(-keep).UnixMilli()
}

// forgetHalf drops the older half of a memory, but not the newest entries: so many of them are kept at least.
func forgetHalf(memory []byte, keep int) []byte {
	n := len(memory) / memorySize
	return memory[max(0, min((n+1)/2, n-keep))*memorySize:]
}

func (s *session) rememberCause(d digest) {
	s.row.Causes = remember(s.row.Causes, d, s.now, s.rules.RememberFor, s.rules.RememberCount)
}

func (s *session) knowsCause(d digest) bool {
	return remembers(s.row.Causes, d, s.now, s.rules.RememberFor)
}

func (s *session) rememberRequest(id string) {
	d := digests.Of(ofRequest, id)
	s.row.Requests = remember(s.row.Requests, d, s.now, s.rules.RememberFor, s.rules.RememberCount)
}

func (s *session) knowsRequest(id string) bool {
	return remembers(s.row.Requests, digests.Of(ofRequest, id), s.now, s.rules.RememberFor)
}

// rememberCall remembers that a call ended. Up to two digests a call: that of its id, that of its result's bytes.
func (s *session) rememberCall(d digest) {
	s.row.Calls = remember(s.row.Calls, d, s.now, s.rules.RememberFor, 2*s.rules.RememberCount)
}

func (s *session) knowsCall(d digest) bool {
	return remembers(s.row.Calls, d, s.now, s.rules.RememberFor)
}
