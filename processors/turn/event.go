package turn

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// Event is an input of the transition: a record of an input topic, or a deadline that is due.
type Event interface {
	session() string
	// record returns the event's record; nil for a deadline.
	record() *Record
	// writtenByTurn reports whether the turn wrote the record for other readers. It ignores such a record.
	writtenByTurn() bool
}

// Record is the record of an event; every event but a deadline has one. Apply does not change its bytes and keeps no
// reference to them outside the row.
type Record struct {
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

func (r *Record) session() string { return r.Session }
func (r *Record) record() *Record { return r }
func (r *Record) tombstone() bool { return r.Value == nil }

// headerText returns the value of a header, or "" if it is absent.
func (r *Record) headerText(name string) string {
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
func (r *Record) cloneHeaders() (clones []*turnrow.Header) {
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
	// MessageArrived is a record of message-input.
	MessageArrived struct {
		*Record
		Message topics.Message
	}
	// ThinkResponded is a record of think-request-response.
	ThinkResponded struct {
		*Record
		Response topics.ThinkResponse
	}
	// ThinkFailed is a record of think-dlq.
	ThinkFailed struct {
		*Record
		Failure topics.ThinkFailure
	}
	// ToolAnswered is a record of tool-use-result.
	ToolAnswered struct {
		*Record
		Result topics.ToolUseResult
	}
	// ToolFailed is a record of tool-use-dlq.
	ToolFailed struct {
		*Record
		Item topics.ToolUseItem
	}
	// RouteGiven is a record of reply-to.
	RouteGiven struct {
		*Record
		Route topics.Route
	}
	// Controlled is a record of session-control.
	Controlled struct {
		*Record
		Control topics.Control
	}
	// Compacted is a record of compaction-result.
	Compacted struct {
		*Record
		Result topics.CompactionResult
	}
	// GateEnded is a record of gate-outcomes.
	GateEnded struct {
		*Record
		Outcome topics.GateOutcome
	}
	// GateOpened is a record of gate-requests.
	GateOpened struct {
		*Record
		Request topics.GateRequest
	}
	// DeadlineCame states that the row's earliest deadline is due.
	DeadlineCame struct {
		Session string
		// Unread is nil if all records that were written before now have been applied, or if nothing is due that would wait
		// for them.
		Unread *Unread
	}
)

// Unread says that the inputs may have records of the session that are not read yet, although they were written before its
// deadline came due.
type Unread struct {
	// From is the time from which on they were written; zero if it is not known.
	From time.Time
	// Since is when the inputs began to be read: at the start of the process, or after a rebalance.
	Since time.Time
}

func (d DeadlineCame) session() string { return d.Session }
func (d DeadlineCame) record() *Record { return nil }
