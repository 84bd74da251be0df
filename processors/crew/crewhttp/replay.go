package crewhttp

import "github.com/turntable-streams/turntable/processors/internal/entrance"

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
