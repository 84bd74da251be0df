package main

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"time"
)

// stage is the record that a session waits for.
type stage uint8

const (
	idle      stage = iota
	asked           // the think-request of the message
	calling         // the tool calls, and the think-request with their results
	answering       // the output
)

// session is one conversation: the state of its turn, and the record that must follow.
type session struct {
	number    int
	name      string
	key       []byte
	partition int32

	turn  int
	stage stage
	calls int  // of each step
	plain bool // this turn sets up the past and asks no tools
	began time.Time

	step    int    // of this turn: how many responses asked for tools
	first   int    // number of the step's first call
	seen    []bool // calls of the step that were handed out
	open    int    // calls that were not
	ids     []uint64
	turnID  uint64
	history digest
	base    int // bytes of the past: a prefix of the history's elements
}

// digest stands for the expected bytes of a history.
type digest struct {
	length int
	sum    uint64
}

// book holds all sessions, plays the model and the tools in them, and judges what the processor writes. It does no I/O
// and is for one goroutine.
type book struct {
	sessions map[string]*session
	all      []*session
	past     past
	steps    int    // of a turn: how many responses ask for tools
	said     string // by each tool
	seed     maphash.Seed
	headers  byte // whether records carry ids: unknown, 'y' or 'n', as the first one has it
	faults   faults
	scratch  []byte
}

// newBook has sessions whose names begin with prefix, so that a later run on the same topics has others.
func newBook(prefix string, sessions, calls int, p past) *book {
	b := &book{
		sessions: make(map[string]*session, sessions), past: p, seed: maphash.MakeSeed(), steps: 1,
		said: "Berth N4 is free from 17:30 until noon of the day after.",
	}
	for i := range sessions {
		name := fmt.Sprintf("%s%07d", prefix, i)
		s := &session{number: i, name: name, key: []byte(name), seen: make([]bool, calls), history: b.digest(nil)}
		b.sessions[name], b.all = s, append(b.all, s)
	}
	return b
}

// digest is that of the array with these elements.
func (b *book) digest(contents ...[]byte) digest {
	var h maphash.Hash
	h.SetSeed(b.seed)
	n, first := 2, true
	_ = h.WriteByte('[')
	for _, c := range contents {
		if len(c) == 0 {
			continue
		}
		if !first {
			_ = h.WriteByte(',')
			n++
		}
		first = false
		_, _ = h.Write(c)
		n += len(c)
	}
	_ = h.WriteByte(']')
	return digest{length: n, sum: h.Sum64()}
}

// message begins a turn with calls tool calls per step. A plain turn only gives the session its past.
func (b *book) message(s *session, calls int, plain bool, began time.Time, now string) []byte {
	s.turn++
	s.stage, s.calls, s.plain, s.began = asked, calls, plain, began
	s.ids, s.turnID = s.ids[:0], 0
	s.step, s.first = 0, 0
	content := "Which berth is free at 18:00, and for how long? Question " + strconv.Itoa(s.turn)
	return appendMessage(nil, s, content, now)
}

// request answers a think-request, first with tool calls, then with the answer. It returns nil for a repeat or a fault.
func (b *book) request(s *session, value []byte, now string) []byte {
	r, ok := readRequest(value)
	switch {
	case !ok:
		b.faults.add("think-request", s, "it cannot be read")
		return nil
	case s.stage == answering || s.stage == idle:
		b.faults.repeated(s, "think-request")
		return nil
	case s.stage == calling && !bytes.Contains(r.latest, []byte(`"role":"tool"`)):
		b.faults.repeated(s, "think-request")
		return nil
	case s.stage == calling && !b.results(s, r.latest):
		return nil
	case len(r.history) < 2 || b.digest(inside(r.history)) != s.history:
		b.faults.add("history", s, "it is not what the last response left")
		return nil
	}
	return b.respond(s, r, now)
}

func (b *book) respond(s *session, r request, now string) []byte {
	out := response{previous: [][]byte{inside(r.history)}, latest: r.latest}
	switch {
	case s.plain:
		past := b.past.of(s)
		out.previous, out.compaction, s.base = [][]byte{past, b.toolsBefore(s, now)}, true, len(past)
	case s.stage == asked && len(out.previous[0]) > s.base:
		// The model forgets the turn before, so that a history has the same length in every turn.
		out.previous[0], out.compaction = out.previous[0][:s.base], true
	}
	if s.calls > 0 && s.step < b.steps {
		s.first, s.open = s.step*s.calls, s.calls
		s.step++
		clear(s.seen)
		b.scratch = appendBlocks(b.scratch[:0], s, s.calls)
		out.said, out.uses = appendSaid(nil, s, b.scratch, now), appendToolUses(nil, s, s.calls, now)
		s.stage = calling
	} else {
		out.said, out.end = appendSaid(nil, s, appendAnswer(nil, s), now), true
		s.stage = answering
	}
	s.history = b.digest(append(out.previous, out.latest, out.said)...)
	return appendResponse(make([]byte, 0, out.size()), s, out, now)
}

// toolsBefore are the messages by which a turn with tools differs from a plain one. They are part of the past, so that
// the first turn of a session has a history of the same length as all later ones.
func (b *book) toolsBefore(s *session, now string) []byte {
	calls := len(s.seen)
	if calls == 0 {
		return nil
	}
	said := append(appendSaid(nil, s, appendBlocks(nil, s, calls), now), ',')
	var entries, results []byte
	for i := range calls {
		if i > 0 {
			entries, results = append(entries, ','), append(results, ',')
		}
		result := appendResult(nil, s, appendCallID(nil, s, i), calls, b.said, now)
		results = append(results, result...)
		if r, err := (byPlace{}).result(result); err == nil {
			entries = appendEntry(entries, r)
		}
	}
	return appendToolMessage(said, s.key, entries, results, calls, now)
}

// appendAnswer appends the final text of the model, as JSON.
func appendAnswer(dst []byte, s *session) []byte {
	dst = append(dst, `"Berth N4 is free at 18:00 and until noon of the day after, captain. Answer `...)
	dst = append(dst, s.name...)
	dst = append(dst, '.')
	dst = strconv.AppendInt(dst, int64(s.turn), 10)
	return append(dst, '"')
}

// results checks a tool message: every call has one result, which is that of its tool.
func (b *book) results(s *session, latest []byte) bool {
	if s.open > 0 {
		b.faults.add("tool results", s, "the model is asked before all calls were handed out")
		return false
	}
	content, ok := cut(latest, `"content":[`, `],"timestamp":`)
	if !ok {
		b.faults.add("tool results", s, "the tool message cannot be read")
		return false
	}
	if n := bytes.Count(content, []byte(`"status":"success"`)); n != s.calls {
		b.faults.add("tool results", s, fmt.Sprintf("%d of %d calls have a result", n, s.calls))
		return false
	}
	for i := range s.calls {
		b.scratch = appendCallID(append(b.scratch[:0], `"call":"`...), s, i)
		b.scratch = append(b.scratch, '"')
		if bytes.Count(content, b.scratch) != 1 {
			b.faults.add("tool results", s, "a call has not one result")
			return false
		}
	}
	return true
}

func cut(value []byte, from, to string) ([]byte, bool) {
	_, value, ok := bytes.Cut(value, []byte(from))
	if !ok {
		return nil, false
	}
	value, _, ok = bytes.Cut(value, []byte(to))
	return value, ok
}

// call executes a tool call. It returns nil for a repeat or an unknown call.
func (b *book) call(s *session, value []byte, now string) []byte {
	id, ok := text(value, `"tool_use_id":"`)
	if !ok {
		b.faults.add("tool call", s, "it cannot be read")
		return nil
	}
	b.scratch = appendCallPrefix(b.scratch[:0], s)
	n, err := strconv.Atoi(string(id[min(len(b.scratch), len(id)):]))
	n -= s.first
	if !bytes.HasPrefix(id, b.scratch) || err != nil || n < 0 || n >= s.calls {
		b.faults.repeated(s, "tool call")
		return nil
	}
	if s.seen[n] || s.stage != calling {
		b.faults.repeated(s, "tool call")
		return nil
	}
	s.seen[n] = true
	s.open--
	return appendResult(nil, s, id, s.calls, b.said, now)
}

// output ends a turn. It returns false if the output belongs to no open turn.
func (b *book) output(s *session, value []byte) bool {
	b.scratch = appendAnswer(append(b.scratch[:0], `"content":`...), s)
	switch {
	case s.stage == idle:
		b.faults.repeated(s, "output")
		return false
	case bytes.Contains(value, []byte(`"status":`)):
		b.faults.add("output", s, "an error output")
	case s.stage != answering:
		b.faults.add("output", s, "it came before the answer was given")
		return false
	case !bytes.Contains(value, b.scratch):
		b.faults.add("output", s, "not the answer to the open message")
	}
	s.stage = idle
	return true
}

// id checks the id of a used record, "{turn}/...": records of one turn have the same first part, and all ids differ.
// Records without ids are not checked.
func (b *book) id(s *session, id []byte) {
	if b.headers == 0 {
		b.headers = 'n'
		if len(id) > 0 {
			b.headers = 'y'
		}
	}
	if b.headers == 'n' {
		return
	}
	turn, _, ok := bytes.Cut(id, []byte("/"))
	if !ok {
		b.faults.add("id", s, "a record without one")
		return
	}
	of, sum := maphash.Bytes(b.seed, turn), maphash.Bytes(b.seed, id)
	switch {
	case s.turnID == 0:
		s.turnID = of
	case s.turnID != of:
		b.faults.add("id", s, "records of one turn have ids of several")
	case slices.Contains(s.ids, sum):
		b.faults.add("id", s, "two records have the same")
	}
	s.ids = append(s.ids, sum)
}
