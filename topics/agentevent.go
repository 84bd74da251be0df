package topics

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The authors of events. A record without one is the agent's.
const (
	// AuthorUser is the Author of a user's records. They are not folded.
	AuthorUser = "user"
	// AuthorTurn is the Author of the records that processors/turn writes between the steps of a turn.
	AuthorTurn = "turn"
)

// AgentEvent is the value of {agent}-agent-events: one event of a turn, or the record that ends it.
//
// A turn has one writer, or one for each of its steps. One writer leaves Step at 0: TurnID, Attempt and Seq then identify a
// record. With processors/turn each step has writers of its own, which need not know of each other: every
// call of the model is an attempt at its step, and numbers its records from 1. TurnID, Step, Attempt and Seq identify them.
// The records of the turn itself (AuthorTurn) say when a step begins, which of its attempts counts (Settles), what the tools
// returned, and how the turn ends. TurnID, Step and Seq identify those.
type AgentEvent struct {
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	// Step is the number of the step, from 1; 0 if the turn has one writer.
	Step int64 `json:"step,omitzero"`
	// Attempt is the number of the run, from 1. A caller that runs a turn or a step again uses a higher number; the events
	// of the earlier run are then dropped.
	Attempt int64 `json:"attempt"`
	// Seq is the record's number within its attempt, from 1, without gaps. The terminal record is included. The numbers of
	// the turn's own records identify them within their step: they have gaps.
	Seq int64 `json:"seq"`
	// Author is empty for the agent. A user's record may have no Seq (0); it is then not part of the numbering.
	Author string `json:"author,omitzero"`
	// Request is the enriched message that the turn answers, on any record of the attempt, or nil. The fold needs it to
	// write a think-response: it holds the conversation, the cost and the user.
	Request Raw `json:"request,omitzero" as:"object"`
	// Event is a canonical event, wrapped or flat, unchanged. It is nil in the terminal record, and only there.
	Event Raw `json:"event" without:"Result"`
	// Result is set in the terminal record, the last one of the attempt, and only there. If steps have writers of their own,
	// only the turn writes one.
	Result *AgentResult `json:"result,omitzero"`
	// Settles is set in the turn's record that ends a step: the attempt whose events are those of the step. Nil means that
	// no attempt was taken yet.
	Settles *AgentAttempt `json:"settles,omitzero"`
	// IfBegun is set in the terminal record of a turn that does not know whether its worker writes events: it ends the stream of
	// the turn if there is one.
	IfBegun bool `json:"if_begun,omitzero"`
	// UntilMS is set in the turn's records: how long the turn may be silent after it, in milliseconds since the epoch. 0
	// means that the limits of the reader apply.
	UntilMS int64 `json:"until_ms,omitzero"`
}

// AgentAttempt is an attempt at a step, and the number of its last record; 0 for an attempt without records.
type AgentAttempt struct {
	Attempt int64 `json:"attempt"`
	Seq     int64 `json:"seq"`
}

// AgentResult is the outcome of a run: the part of a runner's terminal result that the fold reads.
type AgentResult struct {
	OK bool `json:"ok"`
	// StopReason takes precedence over the stop reason of the events; nil for none.
	StopReason *string `json:"stopReason,omitzero"`
	// Error describes the failure where OK is false, and Code is its machine-readable form, empty for none. CodeThinkTimeout
	// means that the turn expired. Code is read only where steps have writers of their own, and only if it is a string of at
	// most 256 bytes.
	Error *string `json:"error,omitzero"`
	Code  Code    `json:"code,omitzero"`
	// Usage is an object with input, output, total and cost, or nil.
	Usage Raw `json:"usage,omitzero" as:"object"`
}

// RequestOf returns the part of an enriched message by which AgentEvent.Request names the message with a request ID.
func RequestOf(id string) Raw {
	b, _ := jsontext.AppendQuote([]byte(`{"latest_input":{"metadata":{"request_id":`), id) // invalid UTF-8 is replaced
	return append(b, "}}}"...)
}

// maxCode is the length of the longest code of a result that is read, in bytes.
const maxCode = 256

// The values of events are nested in batches, and batches in think-responses.
var agentEventWire = wire[AgentEvent]{depth: MaxValueDepth, read: readValidAgentEvent, write: writeAgentEvent}

// readValidAgentEvent rejects an event without a valid position in its stream, because it could not be folded in order.
func readValidAgentEvent(c *cursor, e *AgentEvent) error {
	if err := readAgentEvent(c, e); err != nil {
		return err
	}
	switch {
	case e.SessionID == "":
		return missing("session_id")
	case e.TurnID == "":
		return missing("turn_id")
	case e.Attempt < 1:
		return missing("attempt")
	case e.Seq < 0, e.Seq == 0 && e.Author != AuthorUser:
		return missing("seq")
	case e.Step < 0, e.Step == 0 && e.Author == AuthorTurn:
		return missing("step")
	case (e.Event == nil) == (e.Result == nil):
		return fmt.Errorf("%w: fields event and result: want one of them", ErrType)
	}
	if e.Step == 0 && e.Result != nil { // other runners have codes with a meaning of their own
		e.Result.Code = ""
	}
	return nil
}

func readAgentEvent(c *cursor, e *AgentEvent) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			e.SessionID, err = c.word()
		case "turn_id":
			e.TurnID, err = c.word()
		case "step":
			e.Step, err = c.ordinal()
		case "attempt":
			e.Attempt, err = c.ordinal()
		case "seq":
			e.Seq, err = c.ordinal()
		case "settles":
			e.Settles, err = readAgentAttempt(c)
		case "until_ms":
			e.UntilMS, err = c.ordinal()
		case "if_begun":
			e.IfBegun, err = c.boolean()
		case "author":
			e.Author, err = c.word()
		case "request":
			e.Request, err = c.document()
		case "event":
			if e.Event, err = c.value(); err == nil && e.Event == nil {
				e.Event = Raw("null")
			}
		case "result":
			e.Result, err = readAgentResult(c)
		default:
			err = c.skip()
		}
		return err
	})
}

func readAgentAttempt(c *cursor) (*AgentAttempt, error) {
	if c.dec.PeekKind() == 'n' {
		return nil, c.skip()
	}
	a := &AgentAttempt{}
	err := c.object(func(name []byte) (err error) {
		switch string(name) {
		case "attempt":
			a.Attempt, err = c.ordinal()
		case "seq":
			a.Seq, err = c.ordinal()
		default:
			err = c.skip()
		}
		return err
	})
	if err == nil && (a.Attempt < 1 || a.Seq < 0) {
		err = missing("settles")
	}
	return a, err
}

func readAgentResult(c *cursor) (*AgentResult, error) {
	if c.dec.PeekKind() == 'n' {
		return nil, c.skip()
	}
	r := &AgentResult{}
	err := c.object(func(name []byte) (err error) {
		switch string(name) {
		case "ok":
			r.OK, err = c.boolean()
		case "stopReason":
			r.StopReason, err = c.plainText()
		case "error":
			r.Error, err = c.anyText()
		case "code":
			if c.dec.PeekKind() != '"' {
				return c.skip()
			}
			var code string
			if code, err = c.word(); len(code) <= maxCode {
				r.Code = Code(code)
			}
		case "usage":
			r.Usage, err = c.document()
		default:
			err = c.skip()
		}
		return err
	})
	return r, err
}

// ordinal reads an integer. Unlike integer it does not truncate: the result would be the number of another record.
func (c *cursor) ordinal() (int64, error) {
	const exact = 1 << 53 // doubles represent every integer below this exactly
	k, b, err := c.scalar("integer")
	if err != nil || len(b) == 0 {
		return 0, err
	}
	s := string(b)
	if k == '0' && strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) >= exact {
			return 0, fmt.Errorf("%w: got number that is not an integer", ErrType)
		}
		return int64(f), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: got %s that is not a 64-bit integer", ErrType, kindName(k))
	}
	return n, nil
}

// plainText reads a string; nil for null. Unlike text it rejects other scalars: a stop reason must be a string.
func (c *cursor) plainText() (*string, error) {
	if k := c.dec.PeekKind(); k != '"' && k != 'n' && k != 0 {
		return nil, mismatch(k, "string")
	}
	return c.text()
}

// anyText reads a string, or the JSON of any other value.
func (c *cursor) anyText() (*string, error) {
	if k := c.dec.PeekKind(); k != '{' && k != '[' {
		return c.text()
	}
	v, err := c.value()
	text := string(v)
	return &text, err
}

func writeAgentEvent(w *writer, e AgentEvent) {
	w.grow(len(e.Event) + len(e.Request))
	w.open()
	w.word("session_id", e.SessionID)
	w.word("turn_id", e.TurnID)
	if e.Step != 0 {
		w.integer("step", e.Step)
	}
	w.integer("attempt", e.Attempt)
	w.integer("seq", e.Seq)
	if e.Author != "" {
		w.word("author", e.Author)
	}
	if e.Settles != nil {
		w.name("settles")
		w.open()
		w.integer("attempt", e.Settles.Attempt)
		w.integer("seq", e.Settles.Seq)
		w.close()
	}
	if e.UntilMS != 0 {
		w.integer("until_ms", e.UntilMS)
	}
	if e.IfBegun {
		w.boolean("if_begun", true)
	}
	if e.Request != nil {
		w.raw("request", e.Request)
	}
	if e.Result == nil {
		w.raw("event", e.Event)
	} else {
		writeAgentResult(w, *e.Result)
	}
	w.close()
}

func writeAgentResult(w *writer, r AgentResult) {
	w.name("result")
	w.open()
	w.boolean("ok", r.OK)
	if r.StopReason != nil {
		w.text("stopReason", r.StopReason)
	}
	if r.Error != nil {
		w.text("error", r.Error)
	}
	w.some("code", string(r.Code))
	if r.Usage != nil {
		w.raw("usage", r.Usage)
	}
	w.close()
}
