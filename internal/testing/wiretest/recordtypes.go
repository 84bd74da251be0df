package wiretest

import (
	"slices"
	"strings"
)

// The types of this file are the facts that the oracle stores about a record: IDs and digests, never a body.

// origin is the id of a record that the pipeline wrote: {turn}/{step}/{kind}/{index}.
type origin struct {
	id, turn, step string
}

func originOf(id string) (origin, bool) {
	parts := strings.Split(id, "/")
	n := len(parts)
	if n < 4 {
		return origin{}, false
	}
	for _, p := range parts {
		if p == "" {
			return origin{}, false
		}
	}
	return origin{id: id, turn: strings.Join(parts[:n-3], "/"), step: parts[n-3]}, true
}

// inputRecord is an input record, for comparison with its dead letter.
type inputRecord struct {
	at         Coord
	key, value digest
	nullKey    bool
	nullValue  bool
	size       int
	// keyText is the record's key, which is the session if the key is correct.
	keyText string
	// original is, for a record of the loop topic, the input record that its headers refer to.
	original *Coord
}

// message is a record of message-input that the pipeline did not write.
type message struct {
	at             Coord
	session        string
	content        digest // role, content, IDs and metadata, without the time
	user           *string
	request        string
	cause          string // turntable.id of a foreign writer
	role           string
	accepted       bool // has the fields and types of a message; else it must be dead-lettered
	onOwnPartition bool // has the session as its key and is in that key's partition
}

// identity is equal for records that are the same message: those with the same turntable.id or, without one, the same
// request id.
func (m message) identity() string {
	switch {
	case m.cause != "":
		return "cause\x00" + m.cause
	case m.request != "":
		return "request\x00" + m.request
	default:
		return m.at.String()
	}
}

// sequence is a digest of a list of messages, in canonical form (aliases resolved, without times) and byte for byte.
type sequence struct {
	n              int
	canonical, raw digest
	// shorter are the sequences that the model may be sent instead of a long one: the oldest exchanges are left out.
	shorter []sequence
}

// continues reports whether the pipeline may send v where s is the history, by the digests that of selects.
func (s sequence) continues(v sequence, of func(sequence) digest) bool {
	return of(s) == of(v) || slices.ContainsFunc(s.shorter, func(x sequence) bool { return of(x) == of(v) })
}

func canonical(s sequence) digest { return s.canonical }

func exact(s sequence) digest { return s.raw }

// step is a record of enriched-message-input.
type step struct {
	at      Coord
	origin  origin
	session string
	role    string
	content digest // of latest_input
	input   digest // of role and content of latest_input, which a response echoes
	history sequence
	cost    *float64
	user    *string
}

// toolItem is an element of tool_uses that is not null.
type toolItem struct{ id, name *string }

func (a toolItem) valid() bool { return !blank(a.id) && !blank(a.name) }

// thinkResponse is a record of think-request-response.
type thinkResponse struct {
	at        Coord
	session   string
	bytes     digest
	cause     string // turntable.id, where the worker sets one
	tombstone bool
	hasFields bool // has at least one of the fields of a response
	echo      *digest
	history   sequence // the session's history after the response
	items     []toolItem
	nulls     int
	end       bool
	answer    digest // assembled text
	input     int64
	output    int64
	total     *float64
	user      *string
	agent     string
}

// A response that asks for tools continues the turn, a final one ends it. With any other response the turn stays open.
func (t thinkResponse) asksForTools() bool { return len(t.items) > 0 || t.nulls > 0 }
func (t thinkResponse) final() bool        { return t.end && !t.asksForTools() }

// call is a record of tool-use, or one that the pipeline wrote to tool-use-dlq.
type call struct {
	at       Coord
	origin   origin
	session  string
	item     toolItem
	total    int
	rejected bool
}

// entry is one result in a tool message.
type entry struct {
	item   toolItem
	value  digest
	size   int
	status string
	reason string // of a synthesised error
}

// digest returns a digest of the entry without its name, because a complete set has the name in the tool's result and a
// tool message the name in the call.
func (e entry) digest() digest { return resultDigest(e.item.id, e.status, e.value) }

// toolMessage is a record of message-input that the pipeline wrote.
type toolMessage struct {
	at      Coord
	origin  origin
	session string
	content digest
	entries []entry
}

// set is a record of tool-use-all-complete.
type set struct {
	at       Coord
	origin   origin
	session  string
	results  []digest
	expected []toolItem
	count    int
}

// toolResult is a record of tool-use-result.
type toolResult struct {
	at       Coord
	session  string
	bytes    digest
	cause    string // turntable.id, where the worker sets one
	id       *string
	value    digest // wrapped if it is not an object
	status   string
	readable bool
}

// outputRecord is a record of message-output.
type outputRecord struct {
	at      Coord
	origin  origin
	session string
	answer  digest
	input   int64
	output  int64
	cost    *float64
	user    *string
	agent   string
	code    string
	isError bool
	request *string
	route   *digest
}

// deadLetter is a record of the group's dead-letter topic.
type deadLetter struct {
	at         Coord
	from       Coord
	key, value digest
	nullKey    bool
	nullValue  bool
	truncated  bool
}

// control is a record of session-control, or a tombstone on think-request-response, after which other rules apply to the
// session.
type control struct {
	session string
	action  string
}
