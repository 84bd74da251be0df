package wiretest

import "strings"

// Facts are what the oracle stores of a record: ids and digests, never a body.

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

// source is an input record as it must come back from the dead-letter topic.
type source struct {
	at         Coord
	key, value digest
	nullKey    bool
	nullValue  bool
	size       int
	// keyText is the session of the record wherever the key says it.
	keyText string
	// viaLoop is the record a record of the loop topic stands for, if its headers say.
	viaLoop *Coord
}

// message is a record of message-input that the pipeline did not write.
type message struct {
	at       Coord
	session  string
	said     digest // role, content, ids, metadata; not the time
	user     *string
	request  string
	cause    string // turntable.id of a foreign writer
	role     string
	accepted bool // has the fields and types of a message; else it must be dead-lettered
	atHome   bool // under its own key, on its key's partition
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

// sequence is a list of messages as a history: canonical (fields, aliases resolved, no times) and byte for byte.
type sequence struct {
	n         int
	said, raw digest
}

// step is a record of enriched-message-input.
type step struct {
	at      Coord
	origin  origin
	session string
	role    string
	said    digest // of latest_input
	input   digest // of latest_input, as a response echoes it
	history sequence
	cost    *float64
	user    *string
}

// asked is an element of tool_uses, without null ones.
type asked struct{ id, name *string }

func (a asked) valid() bool { return !blank(a.id) && !blank(a.name) }

// thought is a record of think-request-response.
type thought struct {
	at        Coord
	session   string
	bytes     digest
	cause     string // turntable.id, where the worker sets one
	tombstone bool
	known     bool // has at least one field of a response
	echo      *digest
	left      sequence // what it leaves as history
	items     []asked
	nulls     int
	end       bool
	answer    digest // assembled text
	input     int64
	output    int64
	total     *float64
	user      *string
	agent     string
}

// final: ends the turn; asking: asks for tools; neither: the turn stays open.
func (t thought) asking() bool { return len(t.items) > 0 || t.nulls > 0 }
func (t thought) final() bool  { return t.end && !t.asking() }

// call is a record of tool-use, or one that the pipeline wrote to tool-use-dlq.
type call struct {
	at       Coord
	origin   origin
	session  string
	asked    asked
	total    int
	rejected bool
}

// entry is one result in a tool message.
type entry struct {
	asked  asked
	value  digest
	size   int
	status string
	reason string // of a synthesised error
}

// digest is the entry but for its name: a set has what the tool called itself, a message what was asked for.
func (e entry) digest() digest { return resultDigest(e.asked.id, e.status, e.value) }

// toolMessage is a record of message-input that the pipeline wrote.
type toolMessage struct {
	at      Coord
	origin  origin
	session string
	said    digest
	entries []entry
}

// set is a record of tool-use-all-complete.
type set struct {
	at       Coord
	origin   origin
	session  string
	results  []digest
	expected []asked
	count    int
}

// returned is a record of tool-use-result.
type returned struct {
	at       Coord
	session  string
	bytes    digest
	cause    string // turntable.id, where the worker sets one
	id       *string
	value    digest // wrapped if it was no object
	status   string
	readable bool
}

// ending is a record of message-output.
type ending struct {
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

// letter is a record of the group's dead-letter topic.
type letter struct {
	at         Coord
	from       Coord
	key, value digest
	nullKey    bool
	nullValue  bool
	truncated  bool
}

// control is a record of session-control, or a tombstone on think-request-response, that changes what may be expected.
type control struct {
	session string
	action  string
}
