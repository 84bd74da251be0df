package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/topics"
)

// ErrTurn is wrapped by the error of Ask and Stream if the turn ended without an answer. The text has the reason and its code.
var ErrTurn = errors.New("agent: the turn has no answer")

// ErrNoDoors is returned by Ask and Stream of an agent whose Parts have no Doors.
var ErrNoDoors = errors.New("agent: Ask and Stream need the part Doors")

// ErrNotRunning is wrapped by the error of Ask and Stream if Run was not called until their context ended.
var ErrNotRunning = errors.New("agent: the agent does not run: call Run, for example in a goroutine")

// Ask writes a user's message to a session and returns the answer. It blocks until the agent is ready and the turn ends, or
// until ctx ends: the turn then continues. Messages of a session that ask at the same time are answered in order. A turn that
// waits for a person's approval waits as long as its gate.
func (a *Agent) Ask(ctx context.Context, session, message string) (answer string, err error) {
	return a.AskOnce(ctx, session, "", message)
}

// AskOnce is Ask for callers that may repeat it, for example after a crash. The first call with a key in a session writes the
// message; another one within an hour gets the answer of the first, also in another process, and waits for it if the turn has
// not ended. An empty key is that of no other call.
func (a *Agent) AskOnce(ctx context.Context, session, key, message string) (answer string, err error) {
	f := folder.NewFolder()
	for e, err := range a.stream(ctx, session, key, message) {
		if err != nil {
			return "", err
		}
		if e.Type == Superseded {
			f = folder.NewFolder()
			continue
		}
		if err := f.Add(e); err != nil {
			return "", err
		}
	}
	b, err := f.Batch(folder.End{})
	if err != nil {
		return "", err
	}
	return answerOf(b), nil
}

// answerOf returns the text of the last message that is the assistant's.
func answerOf(b folder.Batch) (text string) {
	for _, raw := range b.Messages {
		var m struct {
			Role     string     `json:"role"`
			Content  topics.Raw `json:"content"`
			ToolCall *string    `json:"tool_call_id"`
		}
		if json.Unmarshal(raw, &m) == nil && m.Role == "assistant" && m.ToolCall == nil {
			text = topics.Text(m.Content)
		}
	}
	return text
}

// Superseded is the type of the event of Stream after which all events of the turn follow again: those before it are void,
// because a worker was interrupted and the model is asked again.
const Superseded = "superseded"

// Stream is Ask with the events of the turn as they happen. Package folder describes their types; Superseded is a further one.
// The sequence ends after the last event or the first error. A caller that stops reading does not end the turn.
func (a *Agent) Stream(ctx context.Context, session, message string) iter.Seq2[folder.Event, error] {
	return a.stream(ctx, session, "", message)
}

func (a *Agent) stream(ctx context.Context, session, key, message string) iter.Seq2[folder.Event, error] {
	return func(yield func(folder.Event, error) bool) {
		s, err := a.begin(ctx, session, cmp.Or(key, rand.Text()), message)
		if err != nil {
			yield(folder.Event{}, ended(err))
			return
		}
		defer s.Close()
		for {
			item, err := s.Next(ctx)
			var again *invoke.Superseded
			switch {
			case errors.Is(err, io.EOF):
				if err := failure(s.End()); err != nil {
					yield(folder.Event{}, err)
				}
				return
			case errors.As(err, &again):
				if item.Event, err = folder.NewEvent(Superseded, nil); err != nil {
					yield(folder.Event{}, err)
					return
				}
			case err != nil:
				yield(folder.Event{}, ended(err))
				return
			}
			if !yield(item.Event, nil) {
				return
			}
		}
	}
}

// ended returns the error of a turn, or of what reads its events.
func ended(err error) error {
	var e *invoke.Error
	if errors.As(err, &e) {
		return fmt.Errorf("%w: %w", ErrTurn, err)
	}
	return err
}

// failure returns the error of a turn that has no answer.
func failure(end folder.End) error {
	switch {
	case end.Error != "":
		return fmt.Errorf("%w: %s (%s)", ErrTurn, end.Error, end.Code)
	case end.State == folder.Failed, end.State == folder.Expired, end.State == folder.Cancelled:
		return fmt.Errorf("%w: %s", ErrTurn, end.State)
	}
	return nil
}

// begin writes the message when the agent is ready.
func (a *Agent) begin(ctx context.Context, session, key, message string) (invoke.Stream, error) {
	if !a.config.Parts.has(Doors) {
		return nil, ErrNoDoors
	}
	if err := a.wait(ctx); err != nil {
		return nil, err
	}
	data, err := json.Marshal(map[string]any{
		"inputs": map[string]any{"messages": []any{map[string]string{"role": "user", "content": message}}},
	})
	if err != nil {
		return nil, fmt.Errorf("agent: encode the message: %w", err)
	}
	return a.parts.Load().pipeline.Invoke(ctx, invoke.Request{SessionID: session, IdempotencyKey: key, Data: data})
}

// wait blocks until the agent is ready. The error says why it will not be, or why it is not yet.
func (a *Agent) wait(ctx context.Context) error {
	select {
	case <-a.ready:
		return nil
	case <-a.ended:
		return ErrStopped
	case <-ctx.Done():
		if !a.begun.Load() {
			return fmt.Errorf("%w: %w", ErrNotRunning, context.Cause(ctx))
		}
		return fmt.Errorf("agent: the agent is still starting; its health and its log say what it waits for: %w", context.Cause(ctx))
	}
}
