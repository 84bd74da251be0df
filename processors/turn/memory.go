package turn

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
)

// A session remembers past records, requests and calls as digests, each with the time at which it was taken. The digests
// of one kind are packed into one byte field, so that reading a thousand of them costs one allocation.
const (
	digestSize = digests.Size
	memorySize = digestSize + 8
)

type digest = digests.Digest

// The domains of digests: equal texts of different domains have different digests.
const (
	ofCause    = "cause"
	ofRequest  = "request"
	ofResponse = "response"
	ofCall     = "call"
	ofResult   = "result"
	ofFailure  = "failure"
	ofOutcome  = "outcome"
	ofGate     = "gate"
	ofEnd      = "end"
	ofCost     = "cost"
)

// turnID returns the id of the turn of a message, derived from the message's cause id: a repeat of the record has the
// same turn id.
func turnID(session, cause string) string { return digests.Turn(session, cause) }

// remember appends a digest, and drops from the front the digests that have expired or exceed the count.
func remember(memory []byte, d digest, now time.Time, keep time.Duration, count int) []byte {
	memory = append(withRoom(memory, memorySize), d[:]...)
	memory = binary.BigEndian.AppendUint64(memory, uint64(now.UnixMilli()))
	for len(memory) >= memorySize && (len(memory) > count*memorySize || isForgotten(memory, now, keep)) {
		memory = memory[memorySize:]
	}
	return memory
}

// withRoom returns a list of entries with capacity for one more. A list that must be reallocated gets capacity for several
// entries, but less than append would add (a quarter), because the list is cached together with its spare capacity.
func withRoom(list []byte, entry int) []byte {
	if cap(list)-len(list) >= entry {
		return list
	}
	return append(roomFor(len(list), entry), list...)
}

// roomFor allocates an empty list with capacity for length bytes and several entries. Its capacity is the allocator's
// whole size class, so that the cache counts all of it.
func roomFor(length, entry int) []byte {
	return slices.Grow([]byte(nil), length+max(16*entry, length/16))
}

// remembers reports whether a digest is in memory and has not expired.
func remembers(memory []byte, d digest, now time.Time, keep time.Duration) bool {
	front := binary.NativeEndian.Uint64(d[:]) // fast filter: every event compares thousands of digests
	for ; len(memory) >= memorySize; memory = memory[memorySize:] {
		if binary.NativeEndian.Uint64(memory) == front && digest(memory[:digestSize]) == d &&
			!isForgotten(memory, now, keep) {
			return true
		}
	}
	return false
}

// forgotten reports whether the first digest in memory has expired.
func isForgotten(memory []byte, now time.Time, keep time.Duration) bool {
	at := int64(binary.BigEndian.Uint64(memory[digestSize:]))
	return at <= now.Add(-keep).UnixMilli()
}

// forgetHalf drops the older half of a memory, but keeps at least the newest keep entries.
func forgetHalf(memory []byte, keep int) []byte {
	n := len(memory) / memorySize
	return memory[max(0, min((n+1)/2, n-keep))*memorySize:]
}

// A closed think step is remembered as the digest of its input and the number of messages in its history, so that a late or
// repeated response to it is not taken for the answer to the open step.
const stepSize = digestSize + 4
