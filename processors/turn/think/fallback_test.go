package think_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
)

// scripted is a model that fails with err, or answers with its name. It counts its calls.
type scripted struct {
	name  string
	err   error
	cost  float64
	calls int
	tools int
}

func (m *scripted) Think(context.Context, think.Step) (think.Reply, error) {
	m.calls++
	reply := think.Say(m.name)
	if m.err != nil {
		reply = think.Reply{}
	}
	reply.InputTokens, reply.Cost = 10, &m.cost
	return reply, m.err
}

func (m *scripted) WithTools(t ...think.Tool) (think.Model, error) {
	with := *m
	with.tools += len(t)
	return &with, nil
}

func status(code int) error { return &think.ProviderError{Provider: "p", Status: code} }

func TestNextModelIsAskedOnlyIfItMayAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		next bool
	}{
		"overloaded":      {&think.Unavailable{Err: status(http.StatusServiceUnavailable)}, true},
		"rate limit":      {&think.Unavailable{Err: status(http.StatusTooManyRequests), RateLimit: true, After: time.Minute}, true},
		"unreachable":     {think.ErrUnreachable, true},
		"timeout":         {think.ErrTimeout, true},
		"wrong key":       {status(http.StatusUnauthorized), true},
		"no such model":   {status(http.StatusNotFound), true},
		"no credit":       {status(http.StatusPaymentRequired), true},
		"refused":         {think.ErrRefused, false},
		"bad request":     {status(http.StatusBadRequest), false},
		"conversation":    {think.ErrConversation, false},
		"cut off":         {think.ErrTruncated, false},
		"anything else":   {errors.New("model: no"), false},
		"wrapped timeout": {fmt.Errorf("p: %w", think.ErrTimeout), true},
	} {
		first, second := &scripted{name: "first", err: c.err, cost: 1}, &scripted{name: "second", cost: 2}
		reply, err := think.Fallback(first, second).Think(context.Background(), think.Step{})
		if !c.next {
			require.ErrorIs(t, err, c.err, name)
			require.Zero(t, second.calls, name)
			require.EqualValues(t, 10, reply.InputTokens, "%s: what the failed call has used counts", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, "second", reply.Blocks[0].Text, name)
		require.EqualValues(t, 20, reply.InputTokens, "%s: of both calls", name)
		require.InDelta(t, 3, *reply.Cost, 1e-9, name)
	}
}

func TestFailedModelRestsAndIsThenPreferredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &scripted{name: "first", err: &think.Unavailable{Err: think.ErrUnreachable, After: time.Minute}}
		second := &scripted{name: "second"}
		f := think.Fallback(first, second)
		ask := func() string {
			reply, err := f.Think(t.Context(), think.Step{})
			require.NoError(t, err)
			return reply.Blocks[0].Text
		}
		require.Equal(t, "second", ask())
		require.Equal(t, "second", ask())
		require.Equal(t, 1, first.calls, "it rests")
		first.err = nil
		<-time.After(time.Minute) // of the bubble
		require.Equal(t, "first", ask(), "its rest is over")
	})
}

func TestStepThatNoModelAnswersIsRepeatedIfOneMayAnswerLater(t *testing.T) {
	wrong, busy := status(http.StatusUnauthorized), &think.Unavailable{Err: think.ErrUnreachable, After: time.Second}
	reply, err := think.Fallback(&scripted{err: wrong, cost: 1}, &scripted{err: busy, cost: 1}).Think(context.Background(), think.Step{})
	var u *think.Unavailable
	require.ErrorAs(t, err, &u)
	require.Equal(t, time.Second, u.After)
	require.ErrorIs(t, err, think.ErrUnreachable)
	require.ErrorIs(t, err, wrong)
	require.InDelta(t, 2, *reply.Cost, 1e-9)

	_, err = think.Fallback(&scripted{err: wrong}, &scripted{err: wrong}).Think(context.Background(), think.Step{})
	require.False(t, errors.As(err, &u), "asking again would not help")
}

// A reply that breaks in the middle fails, and the next call begins with the next model.
func TestReplyThatBreaksAfterItsFirstPieceIsNotContinuedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaks := think.StreamFunc(func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
			return func(yield func(think.Delta, error) bool) {
				_ = yield(think.Delta{Text: "half"}, nil) && yield(think.Delta{}, &think.Unavailable{Err: think.ErrResponse})
			}
		})
		f := think.Fallback(breaks, &scripted{name: "second"})
		stream := func() (text string, err error) {
			for d, failed := range f.Stream(t.Context(), think.Step{}) {
				if text += d.Text; failed != nil {
					return text, failed
				}
			}
			return text, nil
		}
		text, err := stream()
		require.ErrorIs(t, err, think.ErrResponse)
		require.Equal(t, "half", text)
		text, err = stream()
		require.NoError(t, err)
		require.Equal(t, "second", text)
	})
}

func TestNoOtherModelIsAskedAfterTheEndOfTheStep(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	second := &scripted{name: "second"}
	_, err := think.Fallback(think.Func(func(context.Context, think.Step) (think.Reply, error) {
		cancel()
		return think.Reply{}, think.ErrTimeout
	}), second).Think(ctx, think.Step{})
	require.ErrorIs(t, err, think.ErrTimeout)
	require.Zero(t, second.calls)
}

func TestToolsAreGivenToTheModelsThatTakeThem(t *testing.T) {
	first := &scripted{name: "first"}
	with, err := think.Fallback(first, think.Func(nil)).WithTools(think.Tool{Name: "lookup"})
	require.NoError(t, err)
	reply, err := with.Think(context.Background(), think.Step{})
	require.NoError(t, err)
	require.Equal(t, "first", reply.Blocks[0].Text)
	require.Zero(t, first.tools, "the model itself does not change")
	require.Panics(t, func() { think.Fallback() })
}

// Two models: the second answers while the first is overloaded.
func ExampleFallback() {
	expensive := think.Func(func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{}, &think.Unavailable{Err: think.ErrUnreachable, After: 30 * time.Second}
	})
	cheap := think.Func(func(context.Context, think.Step) (think.Reply, error) { return think.Say("Berth N4."), nil })
	reply, err := think.Fallback(expensive, cheap).Think(context.Background(), think.Step{})
	fmt.Println(reply.Blocks[0].Text, err)
	// Output: Berth N4. <nil>
}
