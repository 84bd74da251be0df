package compact

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Compactor summarizes conversations.
type Compactor interface {
	// Compact summarizes the messages of a conversation. It is called from several goroutines. It must return soon after
	// ctx ends. With an error, or a blank text, the turn continues without a summary. The text of the error is written to
	// the result and to the log, so it must quote neither the conversation nor a secret. The worker does not retry.
	Compact(ctx context.Context, c Conversation) (Summary, error)
}

// Func adapts a function to Compactor.
type Func func(ctx context.Context, c Conversation) (Summary, error)

// Compact implements Compactor.
func (f Func) Compact(ctx context.Context, c Conversation) (Summary, error) { return f(ctx, c) }

// Conversation is what is to be summarized.
type Conversation struct {
	Agent     string
	SessionID string
	UserID    *string
	// Messages are the oldest exchanges of the session, each complete. The first message can be an older summary, which the
	// new one replaces.
	Messages []topics.Message
	// Key identifies the request. It is the same when the request is repeated.
	Key string
	// Deadline is when the turn continues without a summary.
	Deadline time.Time
}

// Summary is the result of a compactor.
type Summary struct {
	Text string
	// InputTokens and OutputTokens are the tokens that the summary used.
	InputTokens, OutputTokens int64
	// Cost is the cost of the summary in dollars, which is added to that of the session; nil if it is unknown.
	Cost *float64
}
