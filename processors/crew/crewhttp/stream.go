package crewhttp

import (
	"container/list"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
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

// replay is what a client gets at once: the state and the events that follow it, or the events that it has missed. It waits for
// the client as a whole, beside the frames that Config.QueueFrames limits.
type replay struct {
	frames []missed
	room   int // bytes that are left for events
	events bool
}

func newReplay(c *Config) *replay { return &replay{room: c.QueueBytes} }

// missed is one frame of a replay: a frame, or the text of one or several events that follow each other.
type missed struct {
	frame []byte

	last *event // of the text; from is the seq of its first event
	from int64
	text string
}

// size is about how many bytes the frame has.
func (m missed) size() int { return len(m.frame) + len(m.text) }

// encoded returns the frame. Secrets are removed from text here, by the goroutine of the client and not under the lock of the
// index.
func (m missed) encoded() []byte {
	if m.frame != nil {
		return m.frame
	}
	return textFrame(m.last, m.from, Redact(m.text))
}

// add adds a frame that may have any size.
func (r *replay) add(frame []byte) { r.frames = append(r.frames, missed{frame: frame}) }

// gap tells the client that events of a subject are missing.
func (r *replay) gap(subject string) {
	r.add(entrance.Object("type", "resume_gap", "subject", subject))
}

// repeat adds the events of a stream after one with a seq, as far as the client wants them, or a gap: if some of them are gone, or
// if the replay would have more bytes of events than may wait for the client. The events of one stream may have any size: they
// are limited by Config.History. It returns the number of the events. The caller holds the lock of the index.
func (r *replay) repeat(x *Index, c *client, s *stream, seq int64) int {
	events, ok := s.since(seq)
	if !ok {
		r.gap(s.subject)
		return 0
	}
	frames, bytes := x.missed(c, events)
	if bytes > max(r.room, 0) && r.events { // room is negative after a first stream that exceeds the limit
		r.gap(s.subject)
		return 0
	}
	r.frames, r.room, r.events = append(r.frames, frames...), r.room-bytes, r.events || len(frames) > 0
	return len(events)
}

// missed returns the frames of events for a client, text only if it has subscribed to it, and their size. The caller holds the
// lock.
func (x *Index) missed(c *client, events []*event) (frames []missed, bytes int) {
	text := missed{}
	for i, e := range events {
		if e.Type != textEvent {
			if c.wants(x.crewOf(e), x.projectOf(e)) {
				frames, bytes = append(frames, missed{frame: e.frame}), bytes+len(e.frame)
			}
			continue
		}
		if text.text == "" {
			text.from = e.Seq
		}
		text.text += e.text
		if ends := i+1 == len(events) || events[i+1].Type != textEvent || len(text.text) >= maxUnshown; ends {
			if text.last = e; c.wants(x.crewOf(e), x.projectOf(e)) && c.wantsText(e.about) {
				frames, bytes = append(frames, text), bytes+text.size()
			}
			text = missed{}
		}
	}
	return frames, bytes
}

const (
	// textDelay is how long text of an agent waits for more.
	textDelay = 100 * time.Millisecond
	// maxUnshown is the size of text that does not wait, in bytes.
	maxUnshown = 32 << 10
)

// delay adds the text of an event to what waits to be shown. The caller holds the lock.
func (x *Index) delay(s *stream, e *event) {
	if s.unshown.Len() == 0 {
		s.from = e.Seq
	}
	if !s.queued {
		s.queued = true
		x.unshown = append(x.unshown, s)
		select {
		case x.late <- struct{}{}:
		default:
		}
	}
	s.unshown.WriteString(e.text)
	s.lastText = e
	if s.unshown.Len() >= maxUnshown {
		x.showText(s)
	}
}

// showText shows the text of an agent that waits, if there is any. The caller holds the lock.
func (x *Index) showText(s *stream) {
	if s.unshown.Len() == 0 {
		return
	}
	last := s.lastText
	text := Redact(s.unshown.String())
	frame, data := textFrame(last, s.from, text), entrance.Object("type", dataFrame, "agentId", last.about, "data", text)
	s.unshown.Reset()
	s.lastText = nil
	crew, project := x.crewOf(last), x.projectOf(last)
	for c := range x.clients {
		if c.wants(crew, project) && c.wantsText(last.about) {
			c.show(frame)
			c.show(data)
		}
	}
}

// flush shows all text that waits.
func (x *Index) flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.unshown {
		s.queued = false
		x.showText(s)
	}
	clear(x.unshown)
	x.unshown = x.unshown[:0]
}

// flushLate shows text that has waited, until ctx ends.
func (x *Index) flushLate(ctx context.Context) {
	for {
		select {
		case <-x.late:
		case <-ctx.Done():
			return
		}
		if !clock.Sleep(ctx, x.config.Clock, textDelay) {
			return
		}
		x.flush()
	}
}
