package updater

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Updater updates the memory of a user.
type Updater interface {
	// Update returns the memory of a user after a session. It is called from several goroutines. It must return soon after ctx
	// ends. After an error with a method RetryAfter() time.Duration it is called again (Config.Retry); any other error is written
	// to memoir-dlq. The text of the error is logged and written to that topic, so it must quote neither the conversation, nor
	// the memory, nor a secret. With an error, it should return the tokens and the cost that it has used.
	Update(ctx context.Context, e Ended) (Memory, error)
}

// Func adapts a function to Updater.
type Func func(ctx context.Context, e Ended) (Memory, error)

// Update implements Updater.
func (f Func) Update(ctx context.Context, e Ended) (Memory, error) { return f(ctx, e) }

// Ended is a session that has ended.
type Ended struct {
	Agent     string
	SessionID string
	// UserID is empty if the session has none; then the memory is that of the session.
	UserID string
	// Memory is the memory so far; empty if there is none.
	Memory string
	// Messages are the conversation, the oldest first. There is at least one. A long conversation comes in
	// several parts, each with the memory so far and a Key of its own.
	Messages []topics.Message
	// Limit is the longest memory in bytes (Config.Limit). A longer one is a failure.
	Limit int
	// Key identifies the snapshot. It is the same when the snapshot is repeated, and another one when the group sends it again.
	Key string
	// Deadline is when the memory must be written.
	Deadline time.Time
}

// Memory is the result of an updater.
type Memory struct {
	// Text is the whole memory, which replaces the one so far. A blank text keeps that one.
	Text string
	// InputTokens and OutputTokens are the tokens that the call used.
	InputTokens, OutputTokens int64
	// Cost is the cost of the call in dollars; nil if it is unknown.
	Cost *float64
}

// Usage is what a call of an updater used.
type Usage struct {
	InputTokens, OutputTokens int64
	Cost                      *float64 // in dollars; nil if it is unknown
	Took                      time.Duration
}

// Metrics are functions that are called from several goroutines. They must not block. A nil function is not called.
type Metrics struct {
	// Called is called after each call of the updater of an agent, with the error of the call.
	Called func(agent string, u Usage, err error)
}
