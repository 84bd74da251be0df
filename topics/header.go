package topics

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// HeaderID is the header with the ID that Turntable derives for a record that it writes. When a record is written again
// after a restart, it has the same ID, so consumers can use it to drop duplicates.
const HeaderID = "turntable.id"

// HeaderFirstAt is the header of a record that package processors/archive has written again: "{partition}/{offset}" at which it
// was first written. A record without HeaderID keeps the ID that is derived from them.
const HeaderFirstAt = "turntable.first-at"

// FirstAt returns where a record was first written: what header, its HeaderFirstAt, says, or otherwise the given partition and offset.
func FirstAt(header []byte, partition int32, offset int64) (int32, int64) {
	first, second, _ := strings.Cut(string(header), "/")
	p, err1 := strconv.ParseInt(first, 10, 32)
	o, err2 := strconv.ParseInt(second, 10, 64)
	if err1 != nil || err2 != nil {
		return partition, offset
	}
	return int32(p), o
}

// HeaderDeadline is the header of enriched-message-input and tool-use with the time at which the turn stops waiting for the
// response or the result, and of memoir-context-session-end with the time at which the group of the memories stops waiting for
// the memory: milliseconds since the epoch as decimal text. A worker can stop at that time. Readers of FlightDeck ignore
// headers.
const HeaderDeadline = "turntable.deadline"

// Deadline reads the value of HeaderDeadline. ok is false if it is absent or not a time.
func Deadline(header []byte) (at time.Time, ok bool) {
	ms, err := strconv.ParseInt(string(header), 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// AppendDeadline appends the value of HeaderDeadline for a time in milliseconds since the epoch.
func AppendDeadline(b []byte, ms int64) []byte { return strconv.AppendInt(b, ms, 10) }

// HeaderAnswersFrom is the header of enriched-message-input and tool-use that the turn may have written before, although its row
// says that it did not: the offset of think-request-response or tool-use-result, in the partition of the record's key, from
// which on an earlier response or result can be found. A worker looks for it before it makes a call that costs money.
const HeaderAnswersFrom = "turntable.answers-from"

// HeaderRoute is the header of message-input with the reply descriptor of the message's route, without the token and with the
// route_id (see WithoutToken), or null for a message without a route. Package processors/turn/turnhttp sets it: a message that has
// it gets no route of another message. The topics have no common order, so a turn can end before
// the record of its route is read. With turn.Config.Delivery its output then has this descriptor, and processors/delivery waits
// for the record.
const HeaderRoute = "turntable.route"

// HeaderReason is the header of think-dlq with the machine-readable reason of a failure. Records of FlightDeck's workers do
// not have it. The values are ReasonDeadline and ReasonEmpty.
const HeaderReason = "turntable.reason"

// ReasonDeadline is the HeaderReason of a step that had no response at its deadline. Its turn ends as if the turn's own timer
// had ended it: with the code think_timeout.
const ReasonDeadline = "deadline"

// ReasonEmpty is the HeaderReason of a step whose model gave empty replies. Its turn ends with the code empty_response.
const ReasonEmpty = "empty"

// HeaderEvents is the header of think-request-response with the events that the worker has written about the step to
// agent-events: the attempt, the number of its last record and why the model stopped, for example "1732650000000/14/end_turn".
// NoEvents says that the worker has written none: the turn writes them. A response without the header is that of another program,
// which may write events of its own. Readers of FlightDeck ignore headers.
const HeaderEvents = "turntable.events"

// NoEvents is the HeaderEvents of a response whose worker has written no events.
const NoEvents = "none"

// Events reads the value of HeaderEvents. ok is false if it is absent or has another form.
func Events(header []byte) (a AgentAttempt, stop string, ok bool) {
	attempt, rest, _ := strings.Cut(string(header), "/")
	seq, stop, _ := strings.Cut(rest, "/")
	var err1, err2 error
	a.Attempt, err1 = strconv.ParseInt(attempt, 10, 64)
	a.Seq, err2 = strconv.ParseInt(seq, 10, 64)
	if err1 != nil || err2 != nil || a.Attempt < 1 || a.Seq < 0 {
		return AgentAttempt{}, "", false
	}
	return a, stop, true
}

// AppendEvents appends the value of HeaderEvents.
func AppendEvents(b []byte, a AgentAttempt, stop string) []byte {
	b = append(strconv.AppendInt(b, a.Attempt, 10), '/')
	return append(append(strconv.AppendInt(b, a.Seq, 10), '/'), stop...)
}

// HeaderCost is the header of think-dlq with what the model calls of the failed step cost, in dollars as decimal text, if
// that is known. The turn adds it to the cost of the session. Records of FlightDeck's workers do not have it.
const HeaderCost = "turntable.cost"

// Cost reads the value of HeaderCost. ok is false if it is absent or not a finite number from 0.
func Cost(header []byte) (dollars float64, ok bool) {
	dollars, err := strconv.ParseFloat(string(header), 64)
	if err != nil || !(dollars >= 0) || math.IsInf(dollars, 0) {
		return 0, false
	}
	return dollars, true
}

// AppendCost appends the value of HeaderCost.
func AppendCost(b []byte, dollars float64) []byte {
	return strconv.AppendFloat(b, dollars, 'g', -1, 64)
}

// HeaderMemoirVersion is the header of memoir-context-session-end and of memoir-context with the version of the user's memory
// that the record is based on, as decimal text. A worker copies it from the snapshot to the memory that it writes, whose
// turntable.id is that of the snapshot followed by "/memory". Records of FlightDeck's updater do not have it. A record of
// memoir-context with the value MemoirEdit is an edit by a person: it is based on nothing and replaces the memory.
const HeaderMemoirVersion = "turntable.memoir-version"

// MemoirEdit is the HeaderMemoirVersion of an edit.
const MemoirEdit = "edit"

// HeaderBy is the header of records that a person has asked for, on session-control and delivery-control and of marks in dead-letter
// topics, with who it was: the subject of their credential, or their account. It is for people who look into what happened; no group
// reads it.
const HeaderBy = "turntable.by"

// The headers of a dead-lettered record, as UTF-8 text. FlightDeck's Python workers also write the first four.
const (
	// HeaderErrorReason says why the record was dead-lettered. It never quotes the record.
	HeaderErrorReason = "error.reason"
	// HeaderErrorSourceTopic, HeaderErrorSourcePartition and HeaderErrorSourceOffset are the position of the original record.
	HeaderErrorSourceTopic     = "error.source.topic"
	HeaderErrorSourcePartition = "error.source.partition"
	HeaderErrorSourceOffset    = "error.source.offset"
	// HeaderErrorGroup is the consumer group that dead-lettered the record.
	HeaderErrorGroup = "error.group"
	// HeaderErrorTruncated is present if the value was truncated or withheld. It contains the original length of the value
	// in bytes.
	HeaderErrorTruncated = "error.truncated"
	// HeaderErrorRequeued is present if the record is no dead letter but says that the one with the same error.source headers was
	// written back to its topic. It contains when, in milliseconds since the epoch. The value says where: topic/partition/offset.
	HeaderErrorRequeued = "error.requeued"
)
