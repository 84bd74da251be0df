package fold

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// errNoParts is returned if a row was written under processors.New and is read under goka.NewProcessor.
var errNoParts = fmt.Errorf("%w: the row has parts, which only processors.New reads", rows.ErrVersion)

// The events of a turn are collected in the tail of the row and moved to a part of the row when the tail is full, so that
// each is written to a part once. The parts of a turn have consecutive numbers, so that the row can refer to many parts in
// a few bytes. If the records of several turns alternate, each turn reserves more numbers every time: from leastRoom to
// mostRoom.
const (
	leastRoom = 4
	mostRoom  = 4096
)

// number returns the number of a new part. Deletions of the parts of a deleted row may still be pending, so the numbers of
// a new row begin with the time in seconds, which is larger.
func (s *transition) number() uint32 { return s.numbers(1) }

func (s *transition) numbers(n uint32) (first uint32) {
	if s.row.NextPart == 0 {
		s.row.NextPart = max(uint32(s.nowMS()/1000), 1) // 0 is no part
	}
	first = s.row.NextPart
	s.row.NextPart += n
	return first
}

// numberOf returns the number of the next part of a turn's events.
func (s *transition) numberOf(t *foldrow.Turn) uint32 {
	if len(t.Parts) == 0 {
		t.Parts = []*foldrow.Extent{{First: s.numbers(1), Room: 1}}
	}
	last := t.Parts[len(t.Parts)-1]
	switch {
	case last.Count < last.Room:
	case last.First+last.Room == s.row.NextPart:
		s.numbers(1)
		last.Room++
	default:
		room := min(max(2*last.Count, leastRoom), mostRoom)
		last = &foldrow.Extent{First: s.numbers(room), Room: room}
		t.Parts = append(t.Parts, last)
	}
	last.Count++
	return last.First + last.Count - 1
}

// write writes a new part.
func (s *transition) write(n uint32, value []byte) {
	if s.parts == nil {
		s.row.Inline = append(s.row.Inline, &foldrow.Inline{Number: n, Value: value})
		return
	}
	s.written = append(s.written, &foldrow.Inline{Number: n, Value: value})
}

// read returns a part; false if it is missing.
func (s *transition) read(n uint32) ([]byte, bool) {
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

// drop deletes a part.
func (s *transition) drop(n uint32) {
	if i := slices.IndexFunc(s.written, func(p *foldrow.Inline) bool { return p.Number == n }); i >= 0 {
		s.written = slices.Delete(s.written, i, i+1)
		return
	}
	if i := slices.IndexFunc(s.row.Inline, func(p *foldrow.Inline) bool { return p.Number == n }); i >= 0 {
		s.row.Inline = slices.Delete(s.row.Inline, i, i+1)
		return
	}
	s.deleted = append(s.deleted, n)
}

// dropEvents deletes the parts of a turn's events.
func (s *transition) dropEvents(t *foldrow.Turn) {
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
	for _, run := range t.Runs {
		s.dropEvents(run)
	}
	for _, q := range t.Queue {
		s.drop(q.Part)
	}
}

// allEffects returns all effects, with those on parts last.
func (s *transition) allEffects() []machine.Effect {
	for _, p := range s.written {
		s.SetPart(p.Number, p.Value)
	}
	for _, n := range s.deleted {
		s.DeletePart(n)
	}
	return s.List()
}

// roomFor reports whether the open turns of the session can grow by that many bytes. Without parts they are in one row.
func (s *transition) roomFor(more int) bool {
	if s.parts != nil {
		return true
	}
	for _, t := range s.row.Open {
		more += turnSize(t)
	}
	return more <= s.config.RecordLimit-rowReserve
}

// turnSize returns how many bytes the row and its parts have for a turn, without its fields of fixed size.
func turnSize(t *foldrow.Turn) int {
	size := int(t.PartsSize+t.HeldSize+t.RequestSize) + len(t.Tail)
	for _, run := range t.Runs {
		size += turnSize(run)
	}
	for _, q := range t.Queue {
		size += int(q.Size)
	}
	return size
}

// keepRequest stores the enriched message that the turn answers, if think-responses are written. If it does not fit, it is
// stored without its history, so that the turn processor can still tell which message was answered. If that does not fit
// either, it is not stored.
func (s *transition) keepRequest(t *foldrow.Turn, request topics.Raw) {
	if !s.config.ThinkResponses || request == nil || t.Request != 0 {
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

func (s *transition) fitsAsRequest(request topics.Raw) bool {
	return len(request) <= s.config.eventLimit() && s.roomFor(len(request))
}
