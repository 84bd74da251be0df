package websocket

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// kind distinguishes the frames of one record. The event comes first.
type kind byte

const (
	kindEvent kind = 'e'
	kindChat  kind = 'c'
)

// eventID identifies a frame and contains the positions in the topics from which a client that received it resumes.
//
//	{feed}/{partition}/{offset}/{kind}~{session}.{born}.{at}{.feed:partition:next}
//
// Clients receive it with a signature (see signer). Numbers have base 36. The part before the "~" is the same in every process and for every repeat of the frame.
type eventID struct {
	feed      feed
	partition int32
	offset    int64
	kind      kind
	// session is a digest of the session's ID, because the positions are only valid for that session.
	session uint32
	// born is the time from which the process that wrote the ID followed the session: it saw no record since then in a feed
	// without a mark. at is the time of the frame's record. Both are in milliseconds since the epoch.
	born, at int64
	marks    marks
}

// marks are the positions, by feed, of a session's first record that was not sent.
type marks [feedCount]mark

// mark is a position in a partition. The zero mark is no position.
type mark struct {
	partition int32
	next      int64
}

const (
	idBase = 36
	// maxEventID is longer than any ID, in bytes.
	maxEventID = 512
)

// digestOf returns the digest of a session's ID in event IDs.
func digestOf(session string) uint32 {
	sum := sha256.Sum256([]byte(session))
	return binary.BigEndian.Uint32(sum[:])
}

func (id eventID) String() string {
	b := make([]byte, 0, 96)
	number := func(before byte, n int64) { b = strconv.AppendInt(append(b, before), n, idBase) }
	b = strconv.AppendInt(b, int64(id.feed), idBase)
	number('/', int64(id.partition))
	number('/', id.offset)
	b = append(b, '/', byte(id.kind))
	number('~', int64(id.session))
	number('.', id.born)
	number('.', id.at)
	for f, m := range id.marks {
		if m.next > 0 {
			number('.', int64(f))
			number(':', int64(m.partition))
			number(':', m.next)
		}
	}
	return string(b)
}

// parseEventID parses a client's last_event_id. ok is false for any text that String does not produce.
func parseEventID(text string) (id eventID, ok bool) {
	name, position, ok := strings.Cut(text, "~")
	names, positions := strings.Split(name, "/"), strings.Split(position, ".")
	if len(text) > maxEventID || !ok || len(names) != 4 || len(positions) < 3 || len(names[3]) != 1 {
		return eventID{}, false
	}
	number := func(text string, limit int64) int64 {
		n, err := strconv.ParseInt(text, idBase, 64)
		ok = ok && err == nil && n >= 0 && n <= limit
		return n
	}
	id = eventID{
		feed: feed(number(names[0], int64(feedCount)-1)), partition: int32(number(names[1], math.MaxInt32)),
		offset: number(names[2], math.MaxInt64), kind: kind(names[3][0]),
		session: uint32(number(positions[0], math.MaxUint32)),
		born:    number(positions[1], maxMS), at: number(positions[2], maxMS),
	}
	for _, text := range positions[3:] {
		parts := strings.Split(text, ":")
		if len(parts) != 3 {
			return eventID{}, false
		}
		f := number(parts[0], int64(feedCount)-1)
		if !ok {
			return eventID{}, false
		}
		id.marks[f] = mark{int32(number(parts[1], math.MaxInt32)), number(parts[2], math.MaxInt64)}
	}
	if !ok || id.String() != text {
		return eventID{}, false
	}
	return id, true
}

// maxMS bounds times in milliseconds, so that calculations do not overflow.
const maxMS = math.MaxInt64 / 1_000_000 / 4
