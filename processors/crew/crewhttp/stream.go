package crewhttp

import (
	"container/list"
	"strings"
	"time"
	"unicode/utf8"
)

// stream is what the index remembers of the events of a subject. The lock of the index guards it.
type stream struct {
	subject string
	last    *event    // the newest event
	applied time.Time // when the index got it
	events  []*event  // the newest ones, without gaps; the last one is last
	bytes   int       // of events and of text
	text    []byte    // the end of the agent's text, for clients that subscribe
	element *list.Element

	// unshown is text that waits to be shown with what follows it, and from is the seq of its first event.
	unshown  strings.Builder
	from     int64
	lastText *event
	queued   bool // it is in Index.unshown
}

// take adds an event. It returns false for a repeat.
func (s *stream) take(e *event) bool {
	if s.last != nil {
		switch {
		case e.Seq > s.last.Seq+1: // the ones between are gone
			s.forget(len(s.events))
		case e.Seq <= s.last.Seq && (e.Seq != 1 || e.AtMS <= s.last.AtMS):
			return false
		case e.Seq <= s.last.Seq: // the row was deleted and created again
			s.forget(len(s.events))
		}
	}
	s.last, s.events, s.bytes = e, append(s.events, e), s.bytes+e.size()
	return true
}

// forget removes the oldest n events.
func (s *stream) forget(n int) {
	for i := range n {
		s.bytes -= s.events[i].size()
		s.events[i] = nil
	}
	s.events = s.events[n:]
}

// addText adds text to the end that is kept, of at most limit bytes.
func (s *stream) addText(text string, limit int) {
	s.bytes -= len(s.text)
	s.text = append(s.text, text...)
	if surplus := len(s.text) - limit; surplus > 0 {
		for surplus < len(s.text) && !utf8.RuneStart(s.text[surplus]) {
			surplus++
		}
		s.text = append(s.text[:0], s.text[surplus:]...)
	}
	s.bytes += len(s.text)
}

// since returns the events after the one with a seq. ok is false if some of them are gone.
func (s *stream) since(seq int64) (events []*event, ok bool) {
	if seq >= s.last.Seq {
		return nil, true
	}
	i := len(s.events) - int(s.last.Seq-seq)
	if i < 0 || seq < 0 {
		return nil, false
	}
	return s.events[i:], true
}

// streams are the streams of all subjects, within limits.
type streams struct {
	limits    History
	text      int
	bySubject map[string]*stream
	used      *list.List // of *stream, the one with the newest event last
	bytes     int
}

func newStreams(h History, text int) *streams {
	return &streams{limits: h, text: text, bySubject: map[string]*stream{}, used: list.New()}
}

// add adds an event. It returns nil for a repeat. The oldest events of the subject, and then those of the subjects that are
// silent for the longest time, make room.
func (m *streams) add(e *event) *stream {
	s := m.bySubject[e.Subject]
	if s == nil {
		s = &stream{subject: e.Subject}
		s.element = m.used.PushBack(s)
		m.bySubject[e.Subject] = s
	}
	before := s.bytes
	if !s.take(e) {
		return nil
	}
	if e.Type == textEvent {
		s.addText(e.text, m.text)
	}
	surplus, bytes := max(0, len(s.events)-m.limits.Events), s.bytes-len(s.text)
	for i := range s.events[:len(s.events)-1] {
		if i >= surplus && bytes <= m.limits.Bytes {
			break
		}
		surplus, bytes = i+1, bytes-s.events[i].size()
	}
	s.forget(surplus)
	m.bytes += s.bytes - before
	m.used.MoveToBack(s.element)
	for m.bytes > m.limits.TotalBytes && m.used.Len() > 1 {
		m.remove(m.used.Front().Value.(*stream))
	}
	return s
}

func (m *streams) remove(s *stream) {
	m.bytes -= s.bytes
	m.used.Remove(s.element)
	delete(m.bySubject, s.subject)
}
