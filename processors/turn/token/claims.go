package token

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Claims are the content of a token.
type Claims struct {
	// SessionID and ToolUseID identify the tool call. Both may be blank, as in FlightDeck.
	SessionID string
	ToolUseID string
	// ToolID and Name are copied to the result; nil if absent.
	ToolID *string
	Name   *string
	// TotalTools is the number of calls that the model made in the same step. The turn does not rely on it.
	TotalTools int
	// Agent is the agent that made the call; nil if absent.
	Agent *string
	// CallID is the turntable.id of the call's record; empty if unknown. It distinguishes calls of one session that have the
	// same ToolUseID: the turn takes a result with a CallID only for that call.
	CallID string
	// IssuedAt and Expires are in whole seconds. If IssuedAt is zero, the latency of the result is 0. The token is valid
	// through the second of Expires. Expires is zero only for tokens that never expire (Verifier.AllowNoExpiry).
	IssuedAt, Expires time.Time
}

// payload returns the claims as JSON, with the members in FlightDeck's order, then those that FlightDeck ignores.
func (c Claims) payload(keyID string) []byte {
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
	if c.CallID != "" {
		b = text(append(b, `,"call_id":`...), c.CallID)
	}
	return append(text(append(b, `,"kid":`...), keyID), '}')
}

func text(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func number(b []byte, n int64) []byte { return append(b, jsontext.Int(n).String()...) }
