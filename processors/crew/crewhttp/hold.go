package crewhttp

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
)

const (
	// holdFor is how long a hold lasts unless it is repeated, and holdEvery how often it is repeated. A decision confirms
	// itself after a minute, so a crew that comes into being meanwhile is held in time.
	holdFor   = 90 * time.Second
	holdEvery = 30 * time.Second
)

// hold keeps the open decisions from confirming themselves while a person looks at them.
type hold struct {
	session *session
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	held    map[string]struct{} // crews
}

func (s *session) openQueue(wish) error {
	switch {
	case !s.client.Caller.Can(auth.Answer):
		return errForbidden
	case s.hold != nil:
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.hold = &hold{session: s, cancel: cancel, held: map[string]struct{}{}}
	s.hold.ended.Go(func() { s.hold.keep(ctx) })
	return nil
}

func (s *session) closeQueue(wish) error {
	s.releaseHold()
	return nil
}

// end ends the hold and waits until the crews are told.
func (h *hold) end() {
	h.cancel()
	h.ended.Wait()
}

// keep holds the decisions of the caller's crews until ctx ends.
func (h *hold) keep(ctx context.Context) {
	s := h.session
	for ctx.Err() == nil {
		s.handler.index.mu.Lock()
		project := s.client.project
		s.handler.index.mu.Unlock()
		for _, c := range s.handler.index.crewsOf(s.client.Caller, "") {
			if id, _ := c.project(); project == "" || id == "" || id == project {
				h.held[c.id] = struct{}{}
			}
		}
		h.tell(true)
		clock.Sleep(ctx, s.handler.config.Clock, holdEvery)
	}
	h.tell(false)
}

// tell writes the hold to the crews, or its end. A failure is logged; the crews end the hold by themselves.
func (h *hold) tell(held bool) {
	s := h.session
	body := crewbody.QueueHeld{Client: s.client.id, Held: held}
	if held {
		body.UntilMS = s.handler.config.Clock.Now().Add(holdFor).UnixMilli()
	}
	var records []processors.Outbound
	id := "door/" + rand.Text()
	for crew := range h.held {
		if out, err := inputTo(s.handler.topics.CrewInputs, crew, id, body); err == nil {
			records = append(records, out)
		}
	}
	if len(records) > 0 {
		_ = s.handler.publish(records...)
	}
}
