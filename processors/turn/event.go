package turn

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// event is an input of the transition: a record of an input topic, or a deadline that is due.
type event interface {
	session() string
	// source returns the event's record; nil for a deadline.
	source() *record
	// writtenByTurn reports whether the turn wrote the record for other readers. It ignores such a record.
	writtenByTurn() bool
}

// record is the record of an event; every event but a deadline has one. apply does not change its bytes and keeps no
// reference to them outside the row.
type record struct {
	// Session is the session id: the key of the row.
	Session string
	// Cause identifies the record for deduplication and in the IDs of the outputs that it causes. See
	// processors.Context.CauseID.
	Cause string
	// Own reports whether the record carries a turntable.id header.
	Own bool
	// At is the record's Kafka timestamp.
	At time.Time
	// Value is the record's value; nil is a tombstone.
	Value []byte
	// Topic, Partition, Offset and Headers are stored with a record that is held, for its dead letter.
	Topic     string
	Partition int32
	Offset    int64
	Headers   []*turnrow.Header

	headers map[string][]byte // the record's headers if Headers is nil
}

func (r *record) session() string { return r.Session }
func (r *record) source() *record { return r }
func (r *record) tombstone() bool { return r.Value == nil }

// headerText returns the value of a header, or "" if it is absent.
func (r *record) headerText(name string) string {
	if v, ok := r.headers[name]; ok {
		return string(v)
	}
	for _, h := range r.Headers {
		if string(h.GetName()) == name {
			return string(h.GetValue())
		}
	}
	return ""
}

// cloneHeaders returns deep copies of the headers. Those from the headers map are sorted by name.
func (r *record) cloneHeaders() (clones []*turnrow.Header) {
	for _, h := range r.Headers {
		clones = append(clones, &turnrow.Header{Name: bytes.Clone(h.Name), Value: bytes.Clone(h.Value)})
	}
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		clones = append(clones, &turnrow.Header{Name: []byte(name), Value: bytes.Clone(r.headers[name])})
	}
	return clones
}

// The events, one for each input topic.
type (
	// messageArrived is a record of message-input.
	messageArrived struct {
		*record
		Message topics.Message
	}
	// thinkResponded is a record of think-request-response.
	thinkResponded struct {
		*record
		Response topics.ThinkResponse
	}
	// thinkFailed is a record of think-dlq.
	thinkFailed struct {
		*record
		Failure topics.ThinkFailure
	}
	// toolAnswered is a record of tool-use-result.
	toolAnswered struct {
		*record
		Result topics.ToolUseResult
	}
	// toolFailed is a record of tool-use-dlq.
	toolFailed struct {
		*record
		Item topics.ToolUseItem
	}
	// routeGiven is a record of reply-to.
	routeGiven struct {
		*record
		Route topics.Route
	}
	// controlled is a record of session-control.
	controlled struct {
		*record
		Control topics.Control
	}
	// compacted is a record of compaction-result.
	compacted struct {
		*record
		Result topics.CompactionResult
	}
	// gateEnded is a record of gate-outcomes.
	gateEnded struct {
		*record
		Outcome topics.GateOutcome
	}
	// gateOpened is a record of gate-requests.
	gateOpened struct {
		*record
		Request topics.GateRequest
	}
	// deadlineCame states that the row's earliest deadline is due.
	deadlineCame struct {
		Session string
		// Read is the time through which the inputs have been read. The zero time is now.
		Read time.Time
		// Unread is nil if all records that were written before now have been applied, or if no session ends that would wait for
		// them.
		Unread *unread
	}
)

// unread says that the inputs may have records of the session that are not read yet, although they were written before its
// deadline came due.
type unread struct {
	// From is the time from which on they were written; zero if it is not known.
	From time.Time
	// Since is when the inputs began to be read: at the start of the process, or after a rebalance.
	Since time.Time
}

func (d deadlineCame) session() string { return d.Session }
func (d deadlineCame) source() *record { return nil }
