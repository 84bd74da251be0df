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
// What it returns becomes the result, as JSON: an object (a struct, a map, topics.Raw) as it is, any other value as
// {"result":value}, nil as {}. An error becomes a result with status error; its text goes to the model. Pending leaves
// the result to the callback door. ctx ends at the call's deadline, or when the worker stops or loses the partition:
// the call is then made again, by whoever has it.
type Func func(ctx context.Context, call Call) (any, error)

// Pending is returned by a tool that has handed its call on: the call is settled for the worker, and whoever holds its
// token (Call.Token) answers it through the callback door. Where nobody does, the turn's tool timeout does.
type Pending struct{}

// ErrNoSecret is returned by Call.Token where the worker has no secret.
var ErrNoSecret = errors.New("tools: no secret for callback tokens: see WithTokens")

// Call is one call of a tool.
type Call struct {
	Agent     string
	SessionID string
	ToolUseID string
	Name      string
	// Input is the JSON object that the model wrote, nil for none. It is checked against nothing.
	Input topics.Raw
	// Deadline is when the turn stops waiting, by WithTimeout.
	Deadline time.Time

	id     string // turntable.id of the record; empty for none
	toolID *string
	total  int64
	at     time.Time // of the record
	tokens tokens
}

// tokens is how callback tokens are minted.
type tokens struct {
	secret string
	ttl    time.Duration
}

// Bind decodes the input into a pointer to a struct or a map. No input is an empty object.
func (c Call) Bind(to any) error {
	input := []byte(c.Input)
	if input == nil {
		input = []byte("{}")
	}
	if err := json.Unmarshal(input, to); err != nil {
		// The error would quote the input.
		return fmt.Errorf("tools: input of %s does not fit %T", c.Name, to)
	}
	return nil
}

// Key names the call, the same whenever it is made again: the Idempotency-Key for whoever acts on it.
func (c Call) Key() string {
	if c.id != "" {
		return c.id
	}
	return c.SessionID + "/" + c.ToolUseID
}

// Token is the callback token of the call, the same whenever it is made again: it is issued at the call's own time. It
// is a secret of whoever answers.
func (c Call) Token() (string, error) {
	if c.tokens.secret == "" {
		return "", ErrNoSecret
	}
	t, err := token.Mint(c.tokens.secret, token.Claims{
		SessionID: c.SessionID, ToolUseID: c.ToolUseID, ToolID: c.toolID, Name: &c.Name, TotalTools: int(c.total),
		Agent: &c.Agent, IssuedAt: c.at, Expires: c.at.Add(c.tokens.ttl),
	})
	if err != nil {
		return "", fmt.Errorf("tools: %w", err)
	}
	return t, nil
}

// Why a record of tool-use is no call.
var (
	errUnreadable = errors.New("tools: record is no tool call")
	errUnnamed    = errors.New("tools: call has no tool_use_id or no name")
	errKeyless    = errors.New("tools: record has no key")
)

// readCall is the call that a record is.
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
	at := r.Timestamp
	if at.UnixMilli() <= 0 {
		at = w.rules.clock.Now()
	}
	return Call{
		Agent: w.topics.Agent, SessionID: string(r.Key), ToolUseID: *item.ToolUseID, Name: *item.Name, Input: item.Input,
		Deadline: at.Add(w.rules.timeout), id: string(r.Header(topics.HeaderID)), toolID: item.ToolID,
		total: max(item.TotalTools, 0), at: at, tokens: w.rules.tokens,
	}, nil
}

func blank(text *string) bool { return text == nil || strings.TrimSpace(*text) == "" }
