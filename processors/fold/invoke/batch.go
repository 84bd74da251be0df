package invoke

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// batch answers with the batch of the whole turn.
func (c *exchange) batch(ctx context.Context, t *turn) {
	defer c.close(t)
	folded, err := c.fold(ctx, t)
	if err != nil {
		c.failed(err)
		return
	}
	if isSet(c.flags.trim) && !c.door.config.Capability.FlagBlind {
		folded.Messages = folder.Trim(folded.Messages)
	}
	if c.vercel {
		folded.Messages = uiMessages(folded.Messages, c.trace.TraceID, c.continuation)
	}
	c.turnHead(t)
	c.succeed(c.outputs(folded))
}

// outputs returns the batch. If requests can answer interactions, the batch of a paused turn also has all open ones.
func (c *exchange) outputs(b folder.Batch) topics.Raw {
	outputs := topics.Raw(b.AppendEnvelope(nil))
	if stop, _ := text(b.StopReason); !c.door.answers || stop != stopPaused || len(b.Pending) == 0 {
		return outputs
	}
	return replaced(outputs, "pending_interactions", array(b.Pending))
}

var errTooLarge = &Error{Code: "too_large", Text: "the turn is too large for a batch"}

// fold folds the events of the turn's stream into the batch of this answer. Streamed answers are not folded. The group of package fold
// folds the same events for {agent}-batch-messages, with the same rules (package folder).
func (c *exchange) fold(ctx context.Context, t *turn) (folder.Batch, error) {
	f := folder.NewFolder(c.door.config.folding()...)
	for {
		item, err := t.next(ctx)
		if ctx.Err() != nil {
			return folder.Batch{}, ended(ctx, ctx.Err())
		}
		var superseded *Superseded
		switch {
		case err == nil:
			if err := f.Add(item.Event); err != nil {
				return folder.Batch{}, malformed(err)
			}
			if f.Size() > c.door.config.BatchLimit {
				return folder.Batch{}, errTooLarge
			}
		case errors.As(err, &superseded):
			f = folder.NewFolder(c.door.config.folding()...)
		case errors.Is(err, io.EOF):
			if o := t.outcome(err); o.err != nil {
				return folder.Batch{}, o.err
			}
			b, err := f.Batch(folder.End{StopReason: t.end.StopReason, State: t.end.State, Decided: t.end.Decided})
			if err != nil {
				return folder.Batch{}, malformed(err)
			}
			return b, nil
		default:
			return folder.Batch{}, err
		}
	}
}

// malformed returns the error of a turn that cannot be folded. It may contain err's text: fold's errors contain no event
// data.
func malformed(err error) error {
	return &Error{Code: "malformed", Text: fmt.Sprintf("the turn cannot be folded: %v", err)}
}

func (c *exchange) close(t *turn) {
	if err := t.stream.Close(); err != nil {
		c.door.config.Logger.Warn("invoke: close a stream", zap.Error(err))
	}
}
