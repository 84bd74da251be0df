package token

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Claims are what a token says.
type Claims struct {
	// SessionID and ToolUseID name the tool call. Both may be blank, as they may be for FlightDeck.
	SessionID string
	ToolUseID string
	// ToolID and Name are passed on with the result; nil is absent.
	ToolID *string
	Name   *string
	// TotalTools is how many tools the model asked for together; the turn does not rely on it.
	TotalTools int
	// Agent is whose call it is; nil is absent.
	Agent *string
	// IssuedAt and Expires have whole seconds. Without the first, latencies are 0; without the second, the token never
	// expires. The second of Expires itself is still good.
	IssuedAt, Expires time.Time
}

// payload is the claims as JSON, in FlightDeck's order.
func (c Claims) payload() []byte {
	b := text([]byte(`{"session_id":`), c.SessionID)
	b = text(append(b, `,"tool_use_id":`...), c.ToolUseID)
	if c.ToolID != nil {
		b = text(append(b, `,"tool_id":`...), *c.ToolID)
	}
	if c.Name != nil {
		b = text(append(b, `,"name":`...), *c.Name)
	}
	b = number(append(b, `,"total_tools":`...), int64(c.TotalTools))
	if c.Agent != nil {
		b = text(append(b, `,"agent":`...), *c.Agent)
	}
	if !c.IssuedAt.IsZero() {
		b = number(append(b, `,"iat":`...), c.IssuedAt.Unix())
	}
	if !c.Expires.IsZero() {
		b = number(append(b, `,"exp":`...), c.Expires.Unix())
	}
	return append(b, '}')
}

func text(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func number(b []byte, n int64) []byte { return append(b, jsontext.Int(n).String()...) }
