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
	plain bool // this turn creates the initial history and calls no tools
	began time.Time

	step          int    // number of responses with tool calls in this turn
	firstCall     int    // number of the step's first call
	called        []bool // calls of the step that were read
	pendingCalls  int    // number of calls of the step that were not read yet
	ids           []uint64
	turnID        uint64
	history       digest
	initialLength int // length of the initial history, which is a prefix of the history's elements
}

// digest is a hash of the expected bytes of a history.
type digest struct {
	length int
	sum    uint64
}

// conversations has all sessions. It plays the model and the tools in them, and checks the records of the processor. It does
// no I/O and is not safe for concurrent use.
type conversations struct {
	sessions       map[string]*session
	all            []*session
	initialHistory initialHistory
	steps          int    // number of responses with tool calls in a turn
	toolText       string // in each tool result
	seed           maphash.Seed
	hasIDs         byte // whether the processor's records have IDs: 0 for unknown, otherwise 'y' or 'n' as in the first record
	violations     violations
	scratch        []byte
}

// newConversations creates the sessions. Their names begin with prefix, which differs between runs on the same topics.
func newConversations(prefix string, sessions, calls int, p initialHistory) *conversations {
	b := &conversations{
		sessions: make(map[string]*session, sessions), initialHistory: p, seed: maphash.MakeSeed(), steps: 1,
		toolText: "Berth N4 is free from 17:30 until noon of the day after.",
	}
	for i := range sessions {
		name := fmt.Sprintf("%s%07d", prefix, i)
		s := &session{number: i, name: name, key: []byte(name), called: make([]bool, calls), history: b.digest(nil)}
		b.sessions[name], b.all = s, append(b.all, s)
	}
	return b
}

// digest returns the digest of a JSON array with the given elements.
func (b *conversations) digest(contents ...[]byte) digest {
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

// message begins a turn with calls tool calls per step. A plain turn only creates the initial history.
func (b *conversations) message(s *session, calls int, plain bool, began time.Time, now string) []byte {
	s.turn++
	s.stage, s.calls, s.plain, s.began = asked, calls, plain, began
	s.ids, s.turnID = s.ids[:0], 0
	s.step, s.firstCall = 0, 0
	content := "Which berth is free at 18:00, and for how long? Question " + strconv.Itoa(s.turn)
	return appendMessage(nil, s, content, now)
}

// request answers a think-request, first with tool calls, then with the answer. It returns nil for a repeat or a violation.
func (b *conversations) request(s *session, value []byte, now string) []byte {
	r, ok := readRequest(value)
	switch {
	case !ok:
		b.violations.add("think-request", s, "it cannot be read")
		return nil
	case s.stage == answering || s.stage == idle:
		b.violations.repeated(s, "think-request")
		return nil
	case s.stage == calling && !bytes.Contains(r.latest, []byte(`"role":"tool"`)):
		b.violations.repeated(s, "think-request")
		return nil
	case s.stage == calling && !b.results(s, r.latest):
		return nil
	case len(r.history) < 2 || b.digest(arrayContents(r.history)) != s.history:
		b.violations.add("history", s, "it differs from the history after the last response")
		return nil
	}
	return b.respond(s, r, now)
}

func (b *conversations) respond(s *session, r request, now string) []byte {
	out := response{previous: [][]byte{arrayContents(r.history)}, latest: r.latest}
	switch {
	case s.plain:
		past := b.initialHistory.elements(s)
		out.previous, out.compaction, s.initialLength = [][]byte{past, b.initialToolMessages(s, now)}, true, len(past)
	case s.stage == asked && len(out.previous[0]) > s.initialLength:
		// The model drops the previous turn, so that the history has the same length in every turn.
		out.previous[0], out.compaction = out.previous[0][:s.initialLength], true
	}
	if s.calls > 0 && s.step < b.steps {
		s.firstCall, s.pendingCalls = s.step*s.calls, s.calls
		s.step++
		clear(s.called)
		b.scratch = appendBlocks(b.scratch[:0], s, s.calls)
		out.said, out.uses = appendModelMessage(nil, s, b.scratch, now), appendToolUses(nil, s, s.calls, now)
		s.stage = calling
	} else {
		out.said, out.end = appendModelMessage(nil, s, appendAnswer(nil, s), now), true
		s.stage = answering
	}
	s.history = b.digest(append(out.previous, out.latest, out.said)...)
	return appendResponse(make([]byte, 0, out.size()), s, out, now)
}

// initialToolMessages returns the messages that a turn with tools has in addition to a plain one. They are added to the
// initial history, so that the first turn of a session has a history of the same length as all later ones.
func (b *conversations) initialToolMessages(s *session, now string) []byte {
	calls := len(s.called)
	if calls == 0 {
		return nil
	}
	said := append(appendModelMessage(nil, s, appendBlocks(nil, s, calls), now), ',')
	var entries, results []byte
	for i := range calls {
		if i > 0 {
			entries, results = append(entries, ','), append(results, ',')
		}
		result := appendResult(nil, s, appendCallID(nil, s, i), calls, b.toolText, now)
		results = append(results, result...)
		if r, err := (byPosition{}).result(result); err == nil {
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
func (b *conversations) results(s *session, latest []byte) bool {
	if s.pendingCalls > 0 {
		b.violations.add("tool results", s, "the think-request was written before all tool calls")
		return false
	}
	content, ok := cut(latest, `"content":[`, `],"timestamp":`)
	if !ok {
		b.violations.add("tool results", s, "the tool message cannot be read")
		return false
	}
	if n := bytes.Count(content, []byte(`"status":"success"`)); n != s.calls {
		b.violations.add("tool results", s, fmt.Sprintf("%d of %d calls have a result", n, s.calls))
		return false
	}
	for i := range s.calls {
		b.scratch = appendCallID(append(b.scratch[:0], `"call":"`...), s, i)
		b.scratch = append(b.scratch, '"')
		if bytes.Count(content, b.scratch) != 1 {
			b.violations.add("tool results", s, "a call does not have exactly one result")
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
func (b *conversations) call(s *session, value []byte, now string) []byte {
	id, ok := text(value, `"tool_use_id":"`)
	if !ok {
		b.violations.add("tool call", s, "it cannot be read")
		return nil
	}
	b.scratch = appendCallPrefix(b.scratch[:0], s)
	n, err := strconv.Atoi(string(id[min(len(b.scratch), len(id)):]))
	n -= s.firstCall
	if !bytes.HasPrefix(id, b.scratch) || err != nil || n < 0 || n >= s.calls {
		b.violations.repeated(s, "tool call")
		return nil
	}
	if s.called[n] || s.stage != calling {
		b.violations.repeated(s, "tool call")
		return nil
	}
	s.called[n] = true
	s.pendingCalls--
	return appendResult(nil, s, id, s.calls, b.toolText, now)
}

// output ends a turn. It returns false if the output belongs to no open turn.
func (b *conversations) output(s *session, value []byte) bool {
	b.scratch = appendAnswer(append(b.scratch[:0], `"content":`...), s)
	switch {
	case s.stage == idle:
		b.violations.repeated(s, "output")
		return false
	case bytes.Contains(value, []byte(`"status":`)):
		b.violations.add("output", s, "an error output")
	case s.stage != answering:
		b.violations.add("output", s, "it was written before the model's answer")
		return false
	case !bytes.Contains(value, b.scratch):
		b.violations.add("output", s, "not the answer to the open message")
	}
	s.stage = idle
	return true
}

// id checks the id of a used record, "{turn}/...": records of one turn have the same first part, and all ids differ.
// Records without ids are not checked.
func (b *conversations) id(s *session, id []byte) {
	if b.hasIDs == 0 {
		b.hasIDs = 'n'
		if len(id) > 0 {
			b.hasIDs = 'y'
		}
	}
	if b.hasIDs == 'n' {
		return
	}
	turn, _, ok := bytes.Cut(id, []byte("/"))
	if !ok {
		b.violations.add("id", s, "a record without an ID")
		return
	}
	of, sum := maphash.Bytes(b.seed, turn), maphash.Bytes(b.seed, id)
	switch {
	case s.turnID == 0:
		s.turnID = of
	case s.turnID != of:
		b.violations.add("id", s, "records of one turn have IDs of several turns")
	case slices.Contains(s.ids, sum):
		b.violations.add("id", s, "two records have the same ID")
	}
	s.ids = append(s.ids, sum)
}
