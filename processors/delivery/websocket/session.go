package websocket

import (
	"container/list"
	"slices"
	"time"
)

// frame is a message to the clients of a session.
type frame struct {
	text      []byte
	id        string
	kind      kind
	feed      feed
	partition int32
	offset    int64
	at        time.Time
}

// session is a session that has clients, or had them lately. The hub's lock guards it.
type session struct {
	id          string
	owner       *owner // nil for a session that only operators see
	waiting     waiting
	template    eventID // the part that all its event IDs have in common
	seen        marks
	subscribers map[*client]struct{}
	answers     []string // IDs of the last outputs that were sent as chat_response
	recent      []*entry // oldest first
	bytes       int
	forgotten   string        // ID of the last frame that was dropped from recent
	idle        *list.Element // its element in owner.idle; nil while it has subscribers
}

// newSession returns a session that is followed from now on.
func newSession(id string, now time.Time) *session {
	return &session{
		id: id, subscribers: map[*client]struct{}{}, template: eventID{session: digestOf(id), born: clampMS(now)},
	}
}

// entry is a frame in memory. It is in session.recent and in owner.remembered.
type entry struct {
	session *session
	frame   *frame
	element *list.Element // in owner.remembered
}

// maxAnswers is how many of the last outputs of a session are deduplicated.
const maxAnswers = 64

// answered reports whether an output was sent as chat_response before, and stores its ID.
func (s *session) answered(output string) bool {
	if slices.Contains(s.answers, output) {
		return true
	}
	s.answers = append(s.answers, output)
	if len(s.answers) > maxAnswers {
		s.answers = s.answers[1:]
	}
	return false
}

// since returns the frames after the one with an ID. ok is false if that frame is not in memory.
func (s *session) since(id string) (frames []*frame, ok bool) {
	i := slices.IndexFunc(s.recent, func(e *entry) bool { return e.frame.id == id })
	if i < 0 && id != s.forgotten {
		return nil, false
	}
	for _, e := range s.recent[i+1:] {
		frames = append(frames, e.frame)
	}
	return frames, true
}

// frames returns the frames of a record. template is the common part of their event IDs. seen are the session's marks; frames
// advances them past the record. If answered is true, the output was sent before and the chat_response is omitted.
func (r rendered) frames(session string, signer signer, template eventID, seen *marks, answered bool) []*frame {
	before := *seen
	seen[r.feed] = mark{r.partition, r.offset + 1}
	id := template
	id.feed, id.partition, id.offset, id.at = r.feed, r.partition, r.offset, clampMS(r.at)
	newFrame := func(k kind, incomplete []byte, m marks) *frame {
		id.kind, id.marks = k, m
		eventID := signer.sign(session, id.String())
		return &frame{completed(incomplete, session, eventID), eventID, k, r.feed, r.partition, r.offset, r.at}
	}
	if r.chat == nil || answered {
		return []*frame{newFrame(kindEvent, r.event, *seen)}
	}
	// The first frame has the marks before the record, so that a client that resumes after it gets the second.
	return []*frame{newFrame(kindEvent, r.event, before), newFrame(kindChat, r.chat, *seen)}
}

// clampMS returns a time in milliseconds since the epoch, between 0 and maxMS.
func clampMS(t time.Time) int64 { return min(max(t.UnixMilli(), 0), maxMS) }
