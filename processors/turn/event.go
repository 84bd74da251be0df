package turn

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Event is something that happened to a session: a record of an input topic, or a deadline that came.
type Event interface {
	session() string
	// record is where the event comes from; nil for a deadline.
	record() *Record
	apply(s *session)
}

// Record is what every event but a deadline has in common. Its bytes are not changed and not kept beyond the row.
type Record struct {
	// Session is the session id: the key of the row.
	Session string
	// Cause is the record's cause id (R20).
	Cause string
	// Own says that the record carries a turntable.id header.
	Own bool
	// At is the record's timestamp, as its producer wrote it.
	At time.Time
	// Value is the record's bytes; nil is a tombstone.
	Value []byte
	// Topic, Partition, Offset and Headers say where the record stands, for records that are held.
	Topic     string
	Partition int32
	Offset    int64
	Headers   []*Header

	headers map[string][]byte // the record's headers where Headers is nil
}

func (r *Record) session() string { return r.Session }
func (r *Record) record() *Record { return r }
func (r *Record) tombstone() bool { return r.Value == nil }

// headerText is the text of a header, empty where it is absent.
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

// cloneHeaders returns the headers with memory of their own, in the order of their names.
func (r *Record) cloneHeaders() (clones []*Header) {
	for _, h := range r.Headers {
		clones = append(clones, &Header{Name: bytes.Clone(h.Name), Value: bytes.Clone(h.Value)})
	}
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		clones = append(clones, &Header{Name: []byte(name), Value: bytes.Clone(r.headers[name])})
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
	// DeadlineCame says that the row's earliest deadline has come.
	DeadlineCame struct {
		Session string
	}
)

func (d DeadlineCame) session() string { return d.Session }
func (d DeadlineCame) record() *Record { return nil }

// blank is a text that names nothing.
func blank(text *string) bool { return text == nil || strings.TrimSpace(*text) == "" }

// named is the text unless it is blank.
func named(text *string) *string {
	if blank(text) {
		return nil
	}
	return text
}
