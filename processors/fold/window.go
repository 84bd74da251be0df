package fold

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// The window of a turn: the records that arrived before a missing one, in Turn.Held.

// hold stores a record that arrived before a missing one.
func (s *transition) hold(t *foldrow.Turn, e topics.AgentEvent) {
	h := &foldrow.Held{Seq: uint64(e.Seq), Paused: e.Result != nil}
	var event folder.Event
	ok := false
	if h.Paused {
		event, ok = usageIn(e.Result)
	} else {
		event, ok, h.Refused = s.eventOf(e)
	}
	if ok {
		raw := event.Wrapped()
		if len(t.Held) < s.config.WindowCount && int(t.HeldSize)+len(raw) <= s.config.WindowBytes && s.roomFor(len(raw)) {
			h.Part, h.Size = s.number(), uint64(len(raw))
			s.write(h.Part, raw)
		}
	}
	if ok && h.Part == 0 || len(t.Held) >= s.config.WindowCount {
		s.overflow(t)
		return
	}
	if len(t.Held) == 0 {
		t.GapMs = s.nowMS()
	}
	at, _ := heldIndex(t, h.Seq)
	t.Held = slices.Insert(t.Held, at, h)
	t.HeldSize += h.Size
	s.shrink(0)
}

// overflow ends the wait for a missing record, because too many follow it. It closes the turn; an attempt at a step is dropped,
// because another one may be that of the step.
func (s *transition) overflow(t *foldrow.Turn) {
	if owner := s.ownerOf(t); owner != t {
		s.dropRun(owner, t)
		return
	}
	s.close(t, gap)
}

// release applies the held records that follow the last applied record.
func (s *transition) release(t *foldrow.Turn) {
	if len(t.Held) == 0 || t.Held[0].Seq != t.Seq+1 {
		return
	}
	for len(t.Held) > 0 && t.Held[0].Seq == t.Seq+1 {
		h := t.Held[0]
		if h.Part != 0 {
			raw, ok := s.read(h.Part)
			if !ok {
				s.close(s.ownerOf(t), internalError)
				return
			}
			event, err := folder.DecodeEvent(raw)
			if err != nil {
				s.close(s.ownerOf(t), internalError)
				return
			}
			if !s.fold(t, event) {
				return
			}
			s.drop(h.Part)
		}
		if h.Refused {
			t.Refused++
		}
		t.Held, t.HeldSize = t.Held[1:], t.HeldSize-h.Size
		t.Seq++
		if h.Paused && !s.pauseByResult(t) {
			return
		}
	}
	t.GapMs = 0
	if len(t.Held) > 0 {
		t.GapMs = s.nowMS()
	}
}

// heldIndex returns the index of the held record with that seq, or the index at which to insert it.
func heldIndex(t *foldrow.Turn, seq uint64) (int, bool) {
	return slices.BinarySearchFunc(t.Held, seq, func(h *foldrow.Held, seq uint64) int {
		switch {
		case h.Seq < seq:
			return -1
		case h.Seq > seq:
			return 1
		default:
			return 0
		}
	})
}
