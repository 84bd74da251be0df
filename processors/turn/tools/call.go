package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/topics"
)

// Func is a tool. It is called from several goroutines.
//
// Its return value is encoded as JSON and becomes the result: an object (a struct, a map, topics.Raw) unchanged, any other
// value as {"result":value}, nil as {}. An error becomes a result with status error; its text is sent to the model. If it
// returns Pending, the result must be sent to the callback door.
//
// ctx ends at the call's deadline; when the turn ends, with ErrTurnEnded as context.Cause; or when the worker stops or loses
// the record, and the call is then delivered again.
type Func func(ctx context.Context, call Call) (any, error)

// Pending is returned by a tool whose result is sent later, through the callback door, by a holder of the call's token
// (Call.Token). For the worker the call is settled. If no result arrives, the call ends at the turn's tool timeout.
type Pending struct{}

// ErrNoSecret is returned by Call.Token if the worker was made without Config.TokenSecret.
var ErrNoSecret = errors.New("tools: no secret for callback tokens: see Config.TokenSecret")

// Call is one call of a tool.
type Call struct {
	Agent     string
	SessionID string
	ToolUseID string
	Name      string
	// Input is the JSON object that the model wrote; nil if there is none. It is not validated against a schema.
	Input topics.Raw
	// Deadline is when the call is answered with a timeout error: the deadline of the turn, or earlier, see Config.Timeout.
	Deadline time.Time
	// Origin is where the message of the turn came from, see topics.DecodeOrigin; nil if it is not of a channel. Depth is how
	// many delegations led to the turn. A model cannot set them.
	Origin topics.Raw
	Depth  int64

	id     string // turntable.id of the record; empty if it has none
	toolID *string
	total  int64
	at     time.Time // timestamp of the record
	tokens tokens
}

// tokens configures how callback tokens are minted.
type tokens struct {
	secret string
	ttl    time.Duration
}

// Bind decodes the input into to, a pointer to a struct or a map. A call without input is decoded as an empty object. The
// error does not quote the input.
func (c Call) Bind(to any) error {
	input := []byte(c.Input)
	if input == nil {
		input = []byte("{}")
	}
	if err := json.Unmarshal(input, to); err != nil {
		// err is not wrapped: it would quote the input.
		return fmt.Errorf("tools: input of %s does not fit %T", c.Name, to)
	}
	return nil
}

// Key identifies the call. It is the same when the call is repeated, so it can serve as Idempotency-Key.
func (c Call) Key() string {
	if c.id != "" {
		return c.id
	}
	return c.SessionID + "/" + c.ToolUseID
}

// Token returns the callback token of the call. It is the same when the call is repeated, because it is issued at the
// timestamp of the call's record. Everyone who has it can answer the call: treat it as a secret. Without Config.TokenSecret, Token
// returns ErrNoSecret.
func (c Call) Token() (string, error) {
	if c.tokens.secret == "" {
		return "", ErrNoSecret
	}
	t, err := token.Mint(c.tokens.secret, token.Claims{
		SessionID: c.SessionID, ToolUseID: c.ToolUseID, ToolID: c.toolID, Name: &c.Name, TotalTools: int(c.total),
		Agent: &c.Agent, CallID: c.id, IssuedAt: c.at, Expires: c.at.Add(c.tokens.ttl),
	})
	if err != nil {
		return "", fmt.Errorf("tools: %w", err)
	}
	return t, nil
}

// Why a record of tool-use is not a valid call.
var (
	errUnreadable = errors.New("tools: record is not a tool call")
	errUnnamed    = errors.New("tools: call has no tool_use_id or no name")
	errKeyless    = errors.New("tools: record has no key")
)

// readCall decodes a record into a call.
func (w *Worker) readCall(r processors.Inbound) (Call, error) {
	in := w.topics.ToolUse.Codec().Unmarshal(r.Value)
	if in.Err != nil || in.Tombstone() {
		return Call{}, errUnreadable
	}
	item := in.Value
	switch {
	case len(r.Key) == 0:
		return Call{}, errKeyless
	case blank(item.ToolUseID) || blank(item.Name):
		return Call{}, errUnnamed
	}
	return Call{
		Agent: w.topics.Agent, SessionID: string(r.Key), ToolUseID: *item.ToolUseID, Name: *item.Name, Input: item.Input,
		Deadline: w.rules.Deadline(r), id: string(r.Header(topics.HeaderID)), toolID: item.ToolID,
		Origin: item.Origin, Depth: item.Depth,
		total: max(item.TotalTools, 0), at: w.rules.Begun(r), tokens: w.rules.tokens,
	}, nil
}

func blank(text *string) bool { return text == nil || strings.TrimSpace(*text) == "" }
