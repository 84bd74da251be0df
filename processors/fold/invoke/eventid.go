package invoke

import (
	"errors"
	"strconv"
	"strings"
)

// ErrEventID is returned by ParseEventID for a text that is not an event ID.
var ErrEventID = errors.New("invoke: bad event id")

// EventID is the position of an event: the turn, the attempt at it, and the event's number in the attempt from 1. The zero
// value means none.
type EventID struct {
	Turn    string
	Attempt uint64
	Seq     uint64
}

// String returns the ID as it is written in a stream: {turn}.{attempt}.{seq}.
func (id EventID) String() string {
	return id.Turn + "." + strconv.FormatUint(id.Attempt, 10) + "." + strconv.FormatUint(id.Seq, 10)
}

// maxTurnID is the maximum length of a turn's id in an event ID, in bytes.
const maxTurnID = 512

// ParseEventID parses the result of String. It fails with ErrEventID.
func ParseEventID(s string) (EventID, error) {
	rest, seq, ok := cutLast(s)
	turn, attempt, ok2 := cutLast(rest)
	id := EventID{Turn: turn}
	var err, err2 error
	id.Attempt, err = strconv.ParseUint(attempt, 10, 64)
	id.Seq, err2 = strconv.ParseUint(seq, 10, 64)
	if !ok || !ok2 || err != nil || err2 != nil || !id.printable() {
		return EventID{}, ErrEventID
	}
	return id, nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// printable reports whether the ID can be written in a header and in a frame.
func (id EventID) printable() bool {
	if id.Turn == "" || len(id.Turn) > maxTurnID {
		return false
	}
	for i := range len(id.Turn) {
		if b := id.Turn[i]; b < ' ' || b == 0x7f {
			return false
		}
	}
	return true
}
