package model_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/memoir/model"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

var role = "user"

func session() updater.Ended {
	return updater.Ended{
		Agent: "pilot", SessionID: "s", UserID: "mira", Memory: "Skipper", Limit: 20, Key: "end/snapshot/1", Deadline: time.Unix(9, 0),
		Messages: []topics.Message{{Role: &role, Content: topics.Raw(`"I like N4"`)}},
	}
}

func update(t *testing.T, f think.Func, c model.Config) (updater.Memory, error) {
	t.Helper()
	u, err := model.New(f, c)
	require.NoError(t, err)
	return u.Update(t.Context(), session())
}

func answering(blocks ...think.Block) think.Func {
	return func(context.Context, think.Step) (think.Reply, error) { return think.Reply{Blocks: blocks}, nil }
}

func TestModelIsAskedForTheMemory(t *testing.T) {
	cost := 0.25
	var asked think.Step
	m, err := update(t, func(_ context.Context, s think.Step) (think.Reply, error) {
		asked = s
		return think.Reply{
			Blocks: []think.Block{{Text: " Skipper "}, {Text: " "}, {Text: "Likes N4\n"}}, InputTokens: 7, OutputTokens: 3, Cost: &cost,
		}, nil
	}, model.Config{})
	require.NoError(t, err)
	require.Equal(t, updater.Memory{Text: "Skipper\n\nLikes N4", InputTokens: 7, OutputTokens: 3, Cost: &cost}, m)
	require.Equal(t, []string{"pilot", "s", "mira", "end/snapshot/1"}, []string{asked.Agent, asked.SessionID, *asked.UserID, asked.Key})
	require.True(t, asked.Deadline.Equal(time.Unix(9, 0)))
	require.Len(t, asked.Messages, 1)
	question := topics.Text(asked.Input().Content)
	require.Equal(t, updater.Prompt{}.Of(session()), question)
	require.Contains(t, question, "I like N4")
}

func TestQuestionCanBeChosen(t *testing.T) {
	echo := func(_ context.Context, s think.Step) (think.Reply, error) {
		return think.Say(topics.Text(s.Input().Content)), nil
	}
	m, err := update(t, echo, model.Config{Question: func(e updater.Ended) string { return e.Memory + "?" }})
	require.NoError(t, err)
	require.Equal(t, "Skipper?", m.Text)

	m, err = update(t, func(_ context.Context, s think.Step) (think.Reply, error) {
		return think.Reply{InputTokens: int64(strings.Count(topics.Text(s.Input().Content), "at most 11 characters"))}, nil
	}, model.Config{Prompt: updater.Prompt{Length: 11}})
	require.NoError(t, err)
	require.EqualValues(t, 1, m.InputTokens)
}

func TestBlankAnswerIsABlankMemory(t *testing.T) {
	m, err := update(t, answering(think.Block{Text: "\n"}), model.Config{})
	require.NoError(t, err)
	require.Empty(t, m.Text, "which keeps the one before")
}

func TestLongAnswerLosesItsLastLines(t *testing.T) {
	m, err := update(t, answering(think.Block{Text: "Skipper\nLikes N4\nHas a long boat"}), model.Config{})
	require.NoError(t, err)
	require.Equal(t, "Skipper\nLikes N4", m.Text)
	m, err = update(t, answering(think.Block{Text: strings.Repeat("x", 21)}), model.Config{})
	require.NoError(t, err)
	require.Len(t, m.Text, 21, "the worker refuses it")
}

// adapter is a model like those of the adapters, whose Think does not say why it stopped.
type adapter struct{ think.StreamFunc }

func (a adapter) Think(ctx context.Context, s think.Step) (think.Reply, error) {
	reply, _, err := think.Collect(a.Stream(ctx, s))
	return reply, err
}

func TestAnswerThatWasCutOffIsNoMemory(t *testing.T) {
	stopping := func(reason string) (updater.Memory, error) {
		u, err := model.New(adapter{func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
			return func(yield func(think.Delta, error) bool) {
				yield(think.Delta{Text: "Skipper", Usage: &think.Usage{OutputTokens: 3}, Stop: reason}, nil)
			}
		}}, model.Config{})
		require.NoError(t, err)
		return u.Update(t.Context(), session())
	}
	for _, reason := range []string{"max_tokens", "model_context_window_exceeded"} {
		m, err := stopping(reason)
		require.ErrorIs(t, err, think.ErrTruncated, "it would replace the whole memory")
		require.Equal(t, updater.Memory{OutputTokens: 3}, m)
	}
	m, err := stopping("end_turn")
	require.NoError(t, err)
	require.Equal(t, "Skipper", m.Text)
}

func TestCallOfAToolIsNoMemory(t *testing.T) {
	_, err := update(t, answering(think.Block{Call: &think.Call{ID: "t1", Name: "save"}}), model.Config{})
	require.ErrorContains(t, err, "called a tool")
	m, err := update(t, answering(think.Block{Text: "Skipper"}, think.Block{Call: &think.Call{ID: "t1", Name: "save"}}), model.Config{})
	require.NoError(t, err)
	require.Equal(t, "Skipper", m.Text)
}

// The worker retries what has a method RetryAfter, as an Unavailable does.
func TestFailureKeepsItsTypeAndItsUsage(t *testing.T) {
	m, err := update(t, func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{InputTokens: 7}, &think.Unavailable{After: time.Minute, Err: errors.New("overloaded")}
	}, model.Config{})
	var later interface{ RetryAfter() time.Duration }
	require.ErrorAs(t, err, &later)
	require.Equal(t, time.Minute, later.RetryAfter())
	require.EqualValues(t, 7, m.InputTokens)
}

func TestBadConfigIsRefused(t *testing.T) {
	_, err := model.New(nil, model.Config{})
	require.ErrorIs(t, err, model.ErrConfig)
	_, err = model.New(answering(), model.Config{Prompt: updater.Prompt{Length: -1}})
	require.ErrorIs(t, err, model.ErrConfig)
	require.ErrorContains(t, err, "Prompt has the length -1")
}
