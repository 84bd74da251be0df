package share

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// place is the position of a record.
type place struct {
	partition
	offset int64
}

// partition is a partition of a topic, which the protocol names by its ID.
type partition struct {
	topic [16]byte
	id    int32
}

// held is a record that this process has acquired and whose verdict the broker has not confirmed yet. It is guarded by
// member.mu.
type held struct {
	place
	name    string   // of the topic, for logs
	session *session // with the broker that has locked the record
	// acquisition counts how often the broker has delivered the record to this process while it is held.
	acquisition int

	// deadline is when the broker's lock may have expired, which expiry watches; renew is when to extend it.
	deadline, renew time.Time
	expiry          *time.Timer
	cancel          context.CancelCauseFunc // ends the context of the record's handler

	waiting bool // for a limit, without a slot
	done    bool // the handler has returned verdict
	verdict source.Verdict

	sending bool      // a request with this record is in flight
	retry   time.Time // not to be sent before
	// alone sends this record in a request without others of its partition: the broker rejects the acknowledgements of a
	// partition together, and one that was rejected with others may be valid itself.
	alone bool
}

// extend sets the deadline of a lock that the broker has granted by a request that was sent at the given time.
func (h *held) extend(sent time.Time, lock time.Duration) {
	h.deadline, h.renew = sent.Add(lock), sent.Add(lock/3)
	h.expiry.Reset(time.Until(h.deadline))
}

// The acknowledgement types of the protocol.
const (
	gap     int8 = 0 // the offset has no record
	accept  int8 = 1
	release int8 = 2
	renewal int8 = 4
)

// kind is the acknowledgement that the record needs now.
func (h *held) kind() int8 {
	switch {
	case !h.done:
		return renewal
	case h.verdict == source.Settled:
		return accept
	default:
		return release
	}
}

// due returns when an acknowledgement is to be sent.
func (h *held) due() time.Time {
	if h.done || h.retry.After(h.renew) {
		return h.retry
	}
	return h.renew
}
