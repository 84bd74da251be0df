package fold

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// errNoParts is met where a row was written under processors.New and is read under a plain goka.NewProcessor.
var errNoParts = fmt.Errorf("%w: the row has parts, which only processors.New reads", ErrRowVersion)

// A turn's events are written once: as a tail in the row, and when that is full as a part of the row. Parts of one turn
// have numbers one after another, so that the row can name many of them in few bytes; where turns alternate, each sets
// ever more numbers aside.
const (
	leastRoom = 4
	mostRoom  = 4096
)

// number is that of a new part. Numbers of a session that was removed may still be on their way out: those of its next
// life are larger.
func (s *session) number() uint32 { return s.numbers(1) }

func (s *session) numbers(n uint32) (first uint32) {
	if s.row.NextPart == 0 {
		s.row.NextPart = uint32(s.nowMS() / 1000)
	}
	first = s.row.NextPart
	s.row.NextPart += n
	return first
}

// numberOf is that of the next part of a turn's events.
func (s *session) numberOf(t *Turn) uint32 {
	if len(t.Parts) == 0 {
		t.Parts = []*Extent{{First: s.numbers(1), Room: 1}}
	}
	last := t.Parts[len(t.Parts)-1]
	switch {
	case last.Count < last.Room:
	case last.First+last.Room == s.row.NextPart:
		s.numbers(1)
		last.Room++
	default:
		room := min(max(2*last.Count, leastRoom), mostRoom)
		last = &Extent{First: s.numbers(room), Room: room}
		t.Parts = append(t.Parts, last)
	}
	last.Count++
	return last.First + last.Count - 1
}

// write writes a new part.
func (s *session) write(n uint32, value []byte) {
	if s.parts == nil {
		s.row.Inline = append(s.row.Inline, &Inline{Number: n, Value: value})
		return
	}
	s.written = append(s.written, PartWritten{Number: n, Value: value})
}

// read reads a part; false where it is missing.
func (s *session) read(n uint32) ([]byte, bool) {
	for _, p := range s.written {
		if p.Number == n {
			return p.Value, true
		}
	}
	for _, p := range s.row.Inline {
		if p.Number == n {
			return p.Value, true
		}
	}
	if s.parts == nil {
		s.err = errNoParts
		return nil, false
	}
	value, err := s.parts(n)
	if err != nil && s.err == nil {
		s.err = err
	}
	return value, value != nil
}

// drop removes a part.
func (s *session) drop(n uint32) {
	if i := slices.IndexFunc(s.written, func(p PartWritten) bool { return p.Number == n }); i >= 0 {
		s.written = slices.Delete(s.written, i, i+1)
		return
	}
	if i := slices.IndexFunc(s.row.Inline, func(p *Inline) bool { return p.Number == n }); i >= 0 {
		s.row.Inline = slices.Delete(s.row.Inline, i, i+1)
		return
	}
	s.gone = append(s.gone, n)
}

// dropEvents removes the parts of a turn's events.
func (s *session) dropEvents(t *Turn) {
	for _, x := range t.Parts {
		for i := range x.Count {
			s.drop(x.First + i)
		}
	}
	for _, h := range t.Held {
		if h.Part != 0 {
			s.drop(h.Part)
		}
	}
}

// all are the effects, those on parts last.
func (s *session) all() []Effect {
	for _, p := range s.written {
		s.effects = append(s.effects, p)
	}
	for _, n := range s.gone {
		s.effects = append(s.effects, PartGone{Number: n})
	}
	return s.effects
}

// roomFor reports whether the open turns of the session may have so many bytes more.
func (s *session) roomFor(more int) bool {
	if s.rules.SessionLimit == 0 {
		return true
	}
	for _, t := range s.row.Open {
		more += int(t.PartsSize+t.HeldSize+t.RequestSize) + len(t.Tail)
	}
	return more <= s.rules.SessionLimit
}

// keepRequest keeps what the turn answers, where that is needed. One that does not fit is kept without its history, so
// that the turn processor can still tell which message was answered; where that does not fit either, it is left out.
func (s *session) keepRequest(t *Turn, request topics.Raw) {
	if !s.rules.ThinkResponses || request == nil || t.Request != 0 {
		return
	}
	if !s.fitsAsRequest(request) {
		if request = withoutHistory(request); !s.fitsAsRequest(request) {
			return
		}
	}
	t.Request, t.RequestSize = s.number(), uint64(len(request))
	s.write(t.Request, slices.Clone([]byte(request)))
}

func (s *session) fitsAsRequest(request topics.Raw) bool {
	return len(request) <= s.rules.eventLimit() && s.roomFor(len(request))
}
