package turn

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// At least once, a crash can leave the row older than its outputs, because an output is acknowledged before its row is
// written. The worker answers the output. After the restart, the answer may be read before the record that opens its
// step, because topics have no common order. The worker may drop the repeated output, so there may be no second answer.
// Therefore the answer is held in the row until its step opens, and is then applied as if it had arrived at that moment.

// workerReply describes a worker's record: its kind, and which step or call it answers.
type workerReply struct {
	kind      turnrow.Held_Kind
	failure   bool   // of a tool
	toolUseID string // of a tool's record
	tool      *string
	digest    digest // of the record's bytes
	name      stepName
	// What a model's record echoes if its id names no step: the digest of the input and the length of the history. With
	// anyLength, a history of any length matches.
	input     digest
	length    uint32
	anyLength bool
}

// held returns the reply as it is stored in the row. It copies the record's bytes, because the row outlives the record.
func (r workerReply) held(from *record) *turnrow.Held {
	h := &turnrow.Held{
		Kind: r.kind, Failure: r.failure, ToolUseId: r.toolUseID, Digest: r.digest[:],
		TurnId: r.name.turn, Step: r.name.step, Call: r.name.call,
		Topic: from.Topic, Partition: from.Partition, Offset: from.Offset,
		Value: bytes.Clone(from.Value), Headers: from.cloneHeaders(),
	}
	if r.kind != turnrow.Held_TOOL && r.name.turn == "" {
		h.Input, h.InputHistoryLength, h.AnyLength = r.input[:], r.length, r.anyLength
	}
	return h
}

// heldName returns the output that a held record answers.
func heldName(h *turnrow.Held) stepName { return stepName{h.TurnId, h.Step, h.Call} }

// heldEvent decodes a held record into the event that it was when it arrived.
func heldEvent(h *turnrow.Held, session string) (e event, err error) {
	r := &record{
		Session: session, Value: h.Value, Topic: h.Topic, Partition: h.Partition, Offset: h.Offset, Headers: h.Headers,
	}
	r.Cause = r.headerText(topics.HeaderID)
	r.Own = r.Cause != ""
	switch {
	case h.Kind == turnrow.Held_RESPONSE:
		var v topics.ThinkResponse
		v, err = topics.DecodeThinkResponse(h.Value)
		e = thinkResponded{r, v}
	case h.Kind == turnrow.Held_THINK_FAILURE:
		var v topics.ThinkFailure
		v, err = topics.DecodeThinkFailure(h.Value)
		e = thinkFailed{r, v}
	case h.Kind == turnrow.Held_GATE_OUTCOME:
		var v topics.GateOutcome
		v, err = topics.DecodeGateOutcome(h.Value)
		e = gateEnded{r, v}
	case h.Failure:
		var v topics.ToolUseItem
		v, err = topics.DecodeToolUse(h.Value)
		e = toolFailed{r, v}
	default:
		var v topics.ToolUseResult
		v, err = topics.DecodeToolResult(h.Value)
		e = toolAnswered{r, v}
	}
	return e, err
}

// heldTool returns the name of the tool whose reply is held, or nil if it is not known.
func heldTool(h *turnrow.Held) *string {
	if h.Result != nil { // written by an older build
		return h.Result.Name
	}
	switch e, _ := heldEvent(h, ""); e := e.(type) {
	case toolAnswered:
		return e.Result.Name
	case toolFailed:
		return e.Item.Name
	}
	return nil
}

// resultOf returns a tool's result as it is stored in the row. Texts longer than maxID count as absent; none of them
// identifies the result.
func resultOf(t topics.ToolUseResult) *turnrow.Result {
	return &turnrow.Result{
		SessionId:  boundedID(t.SessionID),
		ToolUseId:  t.ToolUseID,
		ToolId:     boundedID(t.ToolID),
		Name:       boundedID(t.Name),
		Result:     bytes.Clone(t.Result),
		LatencyMs:  t.LatencyMS,
		Status:     boundedID(t.Status),
		TotalTools: t.TotalTools,
		Timestamp:  boundedID(t.Timestamp),
	}
}

// repeats reports whether a held record has the same kind and bytes.
func (r workerReply) repeats(h *turnrow.Held) bool {
	return h.Kind == r.kind && bytes.Equal(h.Digest, r.digest[:])
}

// answersAlike reports whether a record that is held for the open step answers the same call.
func (r workerReply) answersAlike(h *turnrow.Held) bool {
	return h.Kind == r.kind && h.ToolUseId == r.toolUseID && (r.name.turn == "" || h.TurnId == r.name.turn && h.Call == r.name.call) &&
		sameTool(heldTool(h), r.tool)
}

// answers reports whether a reply can answer a call that has its tool_use_id. A reply that names a call answers only that
// call.
func (s *session) answers(n stepName, c *turnrow.Call) bool {
	turn := s.row.Turn
	return n.turn == "" || n.turn == turn.Message.TurnId && n.step == turn.Step && int64(n.call) < int64(len(turn.Calls)) &&
		turn.Calls[n.call] == c
}

// sameTool reports whether a reply's tool can be that of a call. FlightDeck's workers may omit the name.
func sameTool(reply, called *string) bool {
	return blank(reply) || blank(called) || *reply == *called
}

// echoes reports whether a held reply of a model names its step by the input that it echoes, and that is the input.
func echoes(h *turnrow.Held, input []byte) bool {
	return h.Kind != turnrow.Held_TOOL && h.TurnId == "" && bytes.Equal(h.Input, input)
}

// deadLetterReply dead-letters a reply that is not used. A tool's failure is dropped instead, because it already is a record
// of a dead-letter topic.
func (s *transition) deadLetterReply(r workerReply, reason string) {
	if !r.failure {
		s.deadLetter(reason)
	}
}

func (s *transition) giveUpEarly(reason string, which func(*turnrow.Held) bool) {
	s.row.Early = slices.DeleteFunc(s.row.Early, func(h *turnrow.Held) bool {
		if !which(h) {
			return false
		}
		s.giveUp(h, reason)
		return true
	})
}

// dropHeld gives up the newest held record, preferring those for later steps. It reports false if none is held.
func (s *transition) dropHeld() bool {
	from := &s.row.Early
	if len(*from) == 0 {
		if s.row.Turn == nil || len(s.row.Turn.Held) == 0 {
			return false
		}
		from = &s.row.Turn.Held
	}
	last := len(*from) - 1
	h := (*from)[last]
	*from = slices.Delete(*from, last, last+1)
	s.giveUp(h, reasonNoRoom)
	return true
}
