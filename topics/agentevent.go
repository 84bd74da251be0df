package topics

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// AuthorUser is the Author of a user's records. They are not folded.
const AuthorUser = "user"

// AgentEvent is the value of {agent}-agent-events: one event of a turn, or the record that ends it. TurnID, Attempt and
// Seq identify it.
type AgentEvent struct {
	SessionID string
	TurnID    string
	// Attempt is the number of the run, from 1. A caller that runs a turn again uses the next number; the events of the
	// earlier run are then dropped.
	Attempt int64
	// Seq is the record's number within its attempt, from 1, without gaps. The terminal record is included.
	Seq int64
	// Author is empty for the agent. A user's record may have no Seq (0); it is then not part of the numbering.
	Author string
	// Request is the enriched message that the turn answers, on any record of the attempt, or nil. The fold needs it to
	// write a think-response: it holds the conversation, the cost and the user.
	Request Raw
	// Event is a canonical event, wrapped or flat, unchanged. It is nil in the terminal record, and only there.
	Event Raw
	// Result is set in the terminal record, the last one of the attempt, and only there.
	Result *AgentResult
}

// AgentResult is the outcome of a run: the part of a runner's terminal result that the fold reads.
type AgentResult struct {
	OK bool
	// StopReason takes precedence over the stop reason of the events; nil for none.
	StopReason *string
	// Error describes the failure where OK is false.
	Error *string
	// Usage is an object with input, output, total and cost, or nil.
	Usage Raw
}

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
	case (e.Event == nil) == (e.Result == nil):
		return fmt.Errorf("%w: fields event and result: want one of them", ErrType)
	}
	return nil
}

func missing(field string) error { return fmt.Errorf("%w: field %s: missing", ErrType, field) }

func readAgentEvent(c *cursor, e *AgentEvent) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			e.SessionID, err = c.word()
		case "turn_id":
			e.TurnID, err = c.word()
		case "attempt":
			e.Attempt, err = c.ordinal()
		case "seq":
			e.Seq, err = c.ordinal()
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
	w.integer("attempt", e.Attempt)
	w.integer("seq", e.Seq)
	if e.Author != "" {
		w.word("author", e.Author)
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
	if r.Usage != nil {
		w.raw("usage", r.Usage)
	}
	w.close()
}
