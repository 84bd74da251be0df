package websocket

import (
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// causality is what a record says about its place in its turn. The turn gives its records the turntable.id
// "{turn}/{step}/{kind}/{index}", and a worker appends a slash and a word of its own to the ID of the record that it answers. Workers
// in other languages write no turntable.id. So calls and results are also matched by their tool_use_id, and messages and responses by
// the message that they repeat.
//
//	enriched -> think-response -> tool-use, tool-use-dlq -> tool-use-result -> all-complete -> tool message -> enriched -> ... -> output
type causality struct {
	turn  name   // 0 for a record that names no turn
	step  int    // 0 for a record that names no step
	gives []name // the facts that hold from the record to the end of its turn: that it was sent
	opens []name // the facts that hold from the record to one that drops them
	drops []name // the facts that no longer hold once the record was sent, because a later step may give them again
	needs []need // what must hold before the record is sent
	last  bool   // the record is the output of its turn
}

// name is the hash of a fact, for example that the model asked for a call. It is never 0.
type name uint64

// need is met by any of its facts.
type need [2]name

const (
	// maxCalls bounds the calls of one record that are ordered, and so the facts that it gives and needs.
	maxCalls = 64
	// turnHex is the length of a turn's ID.
	turnHex = 32
	// maxOwnID is the largest turntable.id that is parsed, in bytes.
	maxOwnID = 256
)

// named returns the name of a fact.
func named(parts ...string) name {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return name(max(h.Sum64(), 1))
}

// The facts about calls, by tool_use_id: the model asked for it, a tool was given it or it was rejected, and it has a result or failed.
func askedFor(call string) name   { return named("asked", call) }
func dispatched(call string) name { return named("dispatched", call) }
func answered(call string) name   { return named("answered", call) }

// The facts about messages, by role and timestamp: a message was written, and the model was sent it.
func written(message string) name  { return named("written", message) }
func prompted(message string) name { return named("prompted", message) }

// The facts that records of workers do not name: a step of the session is open for the model, and the model's part in a turn has ended.
var (
	stepOpened = named("opened")
	modelEnded = named("ended")
)

// stepOf is the record of a turn that a turntable.id names.
type stepOf struct {
	turn   string
	number int
	kind   string
	index  string
	answer bool // the ID is a worker's, which answers that record
}

// stepNamed parses a turntable.id. ok is false if it names no record of a turn.
func stepNamed(id string) (s stepOf, ok bool) {
	parts := strings.SplitN(id, "/", 5)
	if len(id) > maxOwnID || len(parts) < 4 || len(parts[0]) != turnHex {
		return s, false
	}
	if _, err := hex.DecodeString(parts[0]); err != nil {
		return s, false
	}
	number, err := strconv.Atoi(parts[1])
	return stepOf{parts[0], number, parts[2], parts[3], len(parts) > 4}, err == nil && number >= 0
}

// fact is the name of a record of the step: that it was sent.
func (s stepOf) fact(number int, kind, index string) name {
	return named(s.turn, strconv.Itoa(number), kind, index)
}

// causalityOf returns the place of a record in its turn. value is its JSON, nil if it has none.
func causalityOf(f feed, r processors.Inbound, value topics.Raw) (c causality) {
	s, own := stepNamed(string(r.Header(topics.HeaderID)))
	if own {
		c.turn, c.step = named(s.turn), s.number
	}
	switch f {
	case feedEnriched:
		c.ofStep(value, s, own && s.kind == "enriched")
	case feedThink:
		if r.Value != nil { // the tombstone of a session that has ended is no response
			c.ofResponse(value, s, own && s.kind == "enriched")
		}
	case feedToolUse:
		c.ofCall(value, s, own)
	case feedToolUseDLQ:
		c.ofFailure(value, s, own, r.Header(topics.HeaderErrorReason) != nil)
	case feedToolResult:
		c.ofResult(value, s, own)
	case feedAllComplete:
		if own && s.kind == "all-complete" {
			c.gives = []name{s.fact(s.number, "all-complete", "0")}
			for _, call := range callsIn(value, "results") {
				c.needs = append(c.needs, need{dispatched(call)}, need{answered(call)})
				c.drops = append(c.drops, askedFor(call), dispatched(call), answered(call))
			}
		}
	case feedMessageInput:
		if own && s.kind == "message" {
			c.gives = []name{s.fact(s.number, "message", "0")}
			c.needs = []need{{s.fact(s.number, "all-complete", "0")}}
		} else if m := messageOf(value); m != "" {
			c.opens = []name{written(m)}
		}
	case feedOutput:
		if own && s.kind == "output" {
			c.last, c.drops = true, []name{modelEnded}
			if members(value, "error")["error"] == nil { // an error can come without a response of the model
				c.needs = []need{{s.fact(0, "ended", ""), modelEnded}}
			}
		}
	}
	return c
}

// ofStep sets the place of a step for the model. If own is true, s is the step.
func (c *causality) ofStep(value topics.Raw, s stepOf, own bool) {
	c.opens = []name{stepOpened}
	if m := messageOf(members(value, "latest_input")["latest_input"]); m != "" {
		c.opens = append(c.opens, prompted(m))
		if !own || s.number == 1 {
			c.needs, c.drops = []need{{written(m)}}, []name{written(m)}
		}
	}
	if own {
		c.gives = []name{s.fact(s.number, "enriched", "0")}
		if s.number > 1 {
			c.needs = []need{{s.fact(s.number-1, "message", "0")}}
		}
	}
}

// ofResponse sets the place of a think-response. If own is true, s is the step that it answers. Otherwise it waits for a step if it
// repeats the message of one; a worker may have changed that message.
func (c *causality) ofResponse(value topics.Raw, s stepOf, own bool) {
	m := members(value, "end_turn", "endTurn", "last_input_message", "lastInputMessage")
	calls := callsIn(value, "tool_uses", "toolUses")
	ends := len(calls) == 0 || string(m["end_turn"]) == "true" || string(m["endTurn"]) == "true"
	c.drops = []name{stepOpened}
	if own { // its calls name the step, so their tool_use_ids are not needed: a model may use them again
		c.needs = []need{{s.fact(s.number, "enriched", "0")}}
		c.gives = []name{s.fact(s.number, "think", "")}
		if ends {
			c.gives = append(c.gives, s.fact(0, "ended", ""))
		}
		return
	}
	if asked := messageOf(m["last_input_message"]) + messageOf(m["lastInputMessage"]); asked != "" {
		c.needs = []need{{prompted(asked), stepOpened}}
	}
	for _, call := range calls {
		c.opens = append(c.opens, askedFor(call))
	}
	if ends {
		c.opens = append(c.opens, modelEnded)
	}
}

// ofCall sets the place of a tool call.
func (c *causality) ofCall(value topics.Raw, s stepOf, own bool) {
	call := callOf(value)
	if call != "" {
		c.opens = []name{dispatched(call)}
	}
	if own && s.kind == "tool-use" {
		c.gives = []name{s.fact(s.number, s.kind, s.index)}
		c.needs = []need{{s.fact(s.number, "think", ""), askedFor(call)}}
	}
}

// ofFailure sets the place of a record of tool-use-dlq: a call that cannot be given to a tool, or with a reason that a tool failed.
func (c *causality) ofFailure(value topics.Raw, s stepOf, own, reason bool) {
	call := callOf(value)
	if call != "" {
		c.opens = []name{dispatched(call), answered(call)}
	}
	switch {
	case own && s.answer && s.kind == "tool-use": // the failure of a worker
		c.gives = []name{s.fact(s.number, "failure", s.index)}
		c.needs = []need{{s.fact(s.number, "tool-use", s.index)}}
	case own && s.kind == "tool-use-dlq":
		c.gives = []name{s.fact(s.number, s.kind, s.index)}
		c.needs = []need{{s.fact(s.number, "think", ""), askedFor(call)}}
	case reason && call != "":
		c.needs = []need{{dispatched(call)}}
	}
}

// ofResult sets the place of a tool's result.
func (c *causality) ofResult(value topics.Raw, s stepOf, own bool) {
	call := callOf(value)
	if call != "" {
		c.opens = []name{answered(call)}
	}
	switch {
	case own && s.kind == "tool-use":
		c.gives = []name{s.fact(s.number, "result", s.index)}
		c.needs = []need{{s.fact(s.number, "tool-use", s.index)}}
	case call != "":
		c.needs = []need{{dispatched(call)}}
	}
}

// messageOf identifies a message in its session by role and timestamp. It returns an empty string if it has no timestamp.
func messageOf(message topics.Raw) string {
	m := members(message, "role", "timestamp")
	role, at := topics.TextOf(m["role"]), topics.TextOf(m["timestamp"])
	if role == nil || at == nil || *at == "" {
		return ""
	}
	return *role + "\x00" + *at
}

// given reports whether the record meets a need.
func (c *causality) given(n need) bool {
	return slices.ContainsFunc(c.gives, n.has) || slices.ContainsFunc(c.opens, n.has)
}

// callOf returns the tool_use_id of a call or a result, empty if it has none.
func callOf(value topics.Raw) string {
	m := members(value, "tool_use_id", "toolUseId")
	for _, id := range []topics.Raw{m["tool_use_id"], m["toolUseId"]} {
		if text := topics.TextOf(id); text != nil {
			return *text
		}
	}
	return ""
}

// callsIn returns the tool_use_ids of a list, which is the first of the given members that a value has.
func callsIn(value topics.Raw, lists ...string) (calls []string) {
	m := members(value, lists...)
	for _, list := range lists {
		elements, _ := topics.Elements(m[list])
		for _, element := range elements[:min(len(elements), maxCalls)] {
			if call := callOf(element); call != "" {
				calls = append(calls, call)
			}
		}
		if len(elements) > 0 {
			break
		}
	}
	return calls
}
