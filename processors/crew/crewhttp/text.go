package crewhttp

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

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

// bufferOf returns the end of an agent's text; ok is false for an unknown agent. The caller holds the lock.
func (x *Index) bufferOf(agent string) (text string, ok bool) {
	if s := x.streams.bySubject[mailbox.Agent(agent)]; s != nil {
		return string(s.text), true
	}
	_, ok = x.agents[agent]
	return "", ok
}
