package websocket

import (
	"container/list"
	"slices"
	"time"
)

// frame is what clients of a session get.
type frame struct {
	text      []byte
	id        string
	feed      feed
	partition int32
	offset    int64
	at        time.Time
}

// session is what is known of a session that has clients, or had them lately. The hub's lock guards it.
type session struct {
	id          string
	place       eventID // what its ids have in common
	seen        marks
	subscribers map[*client]struct{}
	answers     []string // ids of the last outputs that were shown as answers
	recent      []*entry // oldest first
	bytes       int
	forgotten   string        // id of the last frame that left recent
	idle        *list.Element // nil while it has subscribers
}

// entry is a frame that is remembered, in its session and among all.
type entry struct {
	session *session
	frame   *frame
	among   *list.Element
}

// maxAnswers is how many outputs a session knows repeats of.
const maxAnswers = 64

// answered reports whether an output was shown before, and remembers it.
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

// since are the frames behind the one with an id; ok is false where that one is not known here.
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

// stamp makes the frames of a record that a session is shown: place is what their ids have in common, seen are the
// marks before the record, and after it when stamp returns. An answer whose output was shown before is left out.
func (r shown) stamp(session string, place eventID, seen *marks, answered bool) []*frame {
	before := *seen
	seen[r.feed] = mark{r.partition, r.offset + 1}
	place.feed, place.partition, place.offset, place.at = r.feed, r.partition, r.offset, clampMS(r.at)
	make := func(k kind, text []byte, m marks) *frame {
		place.kind, place.marks = k, m
		id := place.String()
		return &frame{closed(text, session, id), id, r.feed, r.partition, r.offset, r.at}
	}
	if r.chat == nil || answered {
		return []*frame{make(kindEvent, r.event, *seen)}
	}
	// Whoever comes back between the two has the record before him.
	return []*frame{make(kindEvent, r.event, before), make(kindChat, r.chat, *seen)}
}

func clampMS(t time.Time) int64 { return min(max(t.UnixMilli(), 0), maxMS) }
