package wiretest

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// Quirk is a deviation of a model worker from one plain response.
type Quirk string

// The quirks of a model worker. Each was observed in a worker or is permitted.
const (
	QuirkRepeat      Quirk = "repeat"      // every response twice, same bytes
	QuirkLateRepeat  Quirk = "laterepeat"  // every response again, much later
	QuirkRethink     Quirk = "rethink"     // a second, different response for the same step
	QuirkCamel       Quirk = "camel"       // camelCase field names
	QuirkLegacy      Quirk = "legacy"      // `messages`, `cost`, `input_tokens`
	QuirkNoEcho      Quirk = "noecho"      // last_input_message is null
	QuirkShortEcho   Quirk = "shortecho"   // last_input_message is shortened
	QuirkBlocks      Quirk = "blocks"      // the answer is an array of text blocks
	QuirkSilentText  Quirk = "emptyanswer" // the answer has no messages
	QuirkNullItems   Quirk = "nullitems"   // null elements in tool_uses
	QuirkNullMessage Quirk = "nullmsg"     // null elements in last_input_response
	QuirkBlankID     Quirk = "blankid"     // an additional item with a null or blank id or name
	QuirkRepeatID    Quirk = "repeatid"    // an additional item with the id of the first one
	QuirkSameIDs     Quirk = "sameids"     // the tool ids of this turn are those of every turn of the session
	QuirkEndTools    Quirk = "endtools"    // end_turn is true although there are tool calls
	QuirkAgent       Quirk = "agent"       // the answer names its agent
	QuirkGarbage     Quirk = "garbage"     // malformed responses before each valid one
	QuirkSilence     Quirk = "silence"     // no response: think_timeout
	QuirkNoEnd       Quirk = "noend"       // end_turn=false without tools: think_timeout
	QuirkFail        Quirk = "fail"        // the step goes to think-dlq, as the Python runner does
	QuirkFailText    Quirk = "failtext"    // the step goes to think-dlq, as the TypeScript runner does
)

// Deed is the behaviour of a tool worker for a call.
type Deed string

// The deeds of a tool worker.
const (
	DeedOK        Deed = "ok"
	DeedTwice     Deed = "twice"     // the result twice, same bytes
	DeedAgain     Deed = "again"     // a second, different result immediately after the first
	DeedLate      Deed = "late"      // the result again, much later
	DeedForeign   Deed = "foreign"   // a result without a call, before the valid one
	DeedEarly     Deed = "early"     // a result from the model worker before its response, then the tool's
	DeedError     Deed = "error"     // a result with status error
	DeedFail      Deed = "fail"      // the original to tool-use-dlq, as the Python runner does
	DeedMissing   Deed = "missing"   // nothing: the call times out
	DeedText      Deed = "text"      // result is a string
	DeedList      Deed = "list"      // result is an array
	DeedNumber    Deed = "number"    // result is a number
	DeedNull      Deed = "null"      // result is null
	DeedLong      Deed = "long"      // 3 KB: too much for a row that is written with every event
	DeedHuge      Deed = "huge"      // 700 KB
	DeedCount     Deed = "count"     // total_tools is wrong
	DeedNames     Deed = "names"     // session_id and name are wrong, tool_id is absent
	DeedElsewhere Deed = "elsewhere" // in another partition than the key's
	DeedJunk      Deed = "junk"      // malformed and foreign records before the valid one
)

// Plan determines what the workers do in one turn. It is part of the message's text and of the model's responses, so that
// the workers need no state and give a redelivered record the same answer.
type Plan struct {
	// Key identifies the message. It must be unique in a run and contain no spaces.
	Key string
	// Steps is the number of responses with tool calls before the answer, Tools the number of calls in each.
	Steps, Tools int
	// Quirks apply to every response of the turn.
	Quirks []Quirk
	// Deeds are assigned to the calls in order and start over at the end. Empty: DeedOK for every call.
	Deeds []Deed
	// Pad is the size of the answer's padding in bytes.
	Pad int
}

const planMark = "plan "

// Text returns the plan as the content of a message.
func (p Plan) Text() string { return p.at(-1) }

// at returns the plan's text with the number of the last answered step; -1 for none.
func (p Plan) at(step int) string {
	var b strings.Builder
	b.WriteString(planMark)
	b.WriteString("key=" + p.Key + " steps=" + strconv.Itoa(p.Steps) + " tools=" + strconv.Itoa(p.Tools))
	if len(p.Quirks) > 0 {
		b.WriteString(" quirks=" + joined(p.Quirks))
	}
	if len(p.Deeds) > 0 {
		b.WriteString(" deeds=" + joined(p.Deeds))
	}
	if p.Pad > 0 {
		b.WriteString(" pad=" + strconv.Itoa(p.Pad))
	}
	if step >= 0 {
		b.WriteString(" at=" + strconv.Itoa(step))
	}
	return b.String()
}

func joined[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return strings.Join(texts, ",")
}

// parsePlan returns the plan in the first line of a text, and the last answered step (-1 for none). Further lines are
// padding.
func parsePlan(text string) (p Plan, at int, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	rest, ok := strings.CutPrefix(line, planMark)
	if !ok {
		return Plan{}, 0, false
	}
	at = -1
	for _, f := range strings.Fields(rest) {
		name, v, _ := strings.Cut(f, "=")
		n, _ := strconv.Atoi(v)
		switch name {
		case "key":
			p.Key = v
		case "steps":
			p.Steps = n
		case "tools":
			p.Tools = n
		case "pad":
			p.Pad = n
		case "at":
			at = n
		case "quirks":
			p.Quirks = split[Quirk](v)
		case "deeds":
			p.Deeds = split[Deed](v)
		}
	}
	return p, at, p.Key != ""
}

func split[T ~string](list string) []T {
	var out []T
	for _, s := range strings.Split(list, ",") {
		out = append(out, T(s))
	}
	return out
}

// Has reports whether the plan has the quirk.
func (p Plan) Has(q Quirk) bool { return slices.Contains(p.Quirks, q) }

// Deed returns the behaviour of the tool worker for a call of a step.
func (p Plan) Deed(step, call int) Deed {
	if len(p.Deeds) == 0 {
		return DeedOK
	}
	return p.Deeds[(step*p.Tools+call)%len(p.Deeds)]
}

// Codes returns the endings that the turn may have: "" is an answer, all others are error codes.
func (p Plan) Codes() []string {
	switch {
	case p.Has(QuirkSilence), p.Has(QuirkNoEnd):
		return []string{"think_timeout"}
	case p.Has(QuirkFail), p.Has(QuirkFailText):
		return []string{"think_failed"}
	case p.Has(QuirkSilentText) && (slices.Contains(p.Deeds, DeedHuge) || p.Pad > 0):
		return []string{"empty_response", "too_large"}
	case p.Has(QuirkSilentText):
		return []string{"empty_response"}
	case slices.Contains(p.Deeds, DeedHuge), p.Pad > 0:
		return []string{"", "too_large"}
	default:
		return []string{""}
	}
}

// toolID returns the ID of a call.
func (p Plan) toolID(step, call int) string {
	key := p.Key
	if p.Has(QuirkSameIDs) {
		key = "again"
	}
	return "tu_" + key + "_" + strconv.Itoa(step) + "_" + strconv.Itoa(call)
}

// pickNumber returns a number below n that depends only on the texts.
func pickNumber(n int, texts ...string) int {
	h := fnv.New64a()
	for _, t := range texts {
		_, _ = h.Write([]byte(t + "\x00"))
	}
	return int(h.Sum64() % uint64(n))
}
