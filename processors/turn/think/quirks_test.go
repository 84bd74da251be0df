package think_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

func TestEmptyReplyIsAskedForOnceMore(t *testing.T) {
	cost := 0.5
	empty := think.Reply{Blocks: []think.Block{{Text: " \n"}}, InputTokens: 10, Cost: &cost}
	full := think.Reply{Blocks: []think.Block{{Text: "N4."}}, InputTokens: 1, Cost: &cost}
	for name, c := range map[string]struct {
		replies []think.Reply
		want    string
	}{
		"then an answer": {[]think.Reply{empty, full}, "N4."},
		"then a call":    {[]think.Reply{{}, {Blocks: []think.Block{{Call: &think.Call{ID: "c", Name: "n"}}}}}, "tool_use"},
		"twice":          {[]think.Reply{empty, empty, full}, ""},
		"no blocks":      {[]think.Reply{{}, {}, full}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var again []bool
			b := newBench(t, func(_ context.Context, s think.Step) (think.Reply, error) {
				again = append(again, s.Again)
				return c.replies[len(again)-1], nil
			}, think.Config{})
			b.handle(record(question))
			require.Equal(t, []bool{false, true}, again)
			if c.want == "" {
				out, reason := b.failure()
				require.Equal(t, "think: the model's reply is empty", reason)
				require.Equal(t, "empty", string(out.Headers[topics.HeaderReason]))
				if c.replies[0].Cost != nil {
					require.Equal(t, "1", string(out.Headers[topics.HeaderCost]))
				}
				return
			}
			r := b.response()
			require.Contains(t, string(r.LastInputResponse), c.want)
			if c.replies[0].Cost != nil {
				require.Equal(t, int64(11), r.ThinkInputTokens)
				require.InDelta(t, 1, *r.ThinkCost, 0)
			}
		})
	}
}

func TestEmptyReplyOfAStreamIsAskedForOnceMore(t *testing.T) {
	calls := 0
	to := new(paper)
	model := streaming(t, to, think.StreamFunc(func(_ context.Context, s think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			calls++
			if s.Again {
				yield(think.Delta{Text: "N4."}, nil)
			}
		}
	}))
	b := newBench(t, model.Think, think.Config{})
	b.handle(record(question))
	require.Contains(t, string(b.response().LastInputResponse), "N4.")
	require.Equal(t, 2, calls)
}

// A model that numbers its calls from the start in every step, and gives two of them one ID.
func TestCallsOfAReplyHaveIDsOfTheirOwn(t *testing.T) {
	reply := think.Reply{Blocks: []think.Block{
		{Call: &think.Call{ID: "c1", Name: "n", Input: topics.Raw(`{"n":1}`)}},
		{Call: &think.Call{ID: "c1", Name: "n", Input: topics.Raw(`{"n":2}`)}},
		{Call: &think.Call{Name: "n"}},
	}}
	const step = `{"history":[{"role":"user","content":"?"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"n","input":{}}]}],` +
		`"latest_input":{"role":"tool","content":[{"tool_use_id":"c1","name":"n","result":{},"status":"success"}]}}`
	var before []string
	for range 2 {
		b := newBench(t, func(context.Context, think.Step) (think.Reply, error) { return reply, nil }, think.Config{})
		b.handle(record(step))
		var ids []string
		r := b.response()
		for _, c := range r.ToolUses {
			ids = append(ids, *c.ToolUseID)
			require.Contains(t, string(r.LastInputResponse), `"id":"`+*c.ToolUseID+`"`)
		}
		require.Equal(t, []string{"c1-2", "c1-3"}, ids[:2])
		require.True(t, strings.HasPrefix(ids[2], "call_"), ids[2])
		require.True(t, before == nil || before[2] == ids[2], "a repeat of the step has the same IDs")
		before = ids
	}
}

func TestCallsOfCustomModelsAreRead(t *testing.T) {
	input := func(text string) think.Block {
		return think.Block{Call: &think.Call{ID: text, Name: "n", Input: topics.Raw(text)}}
	}
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{Blocks: []think.Block{
			input(`{"n":1}`), input(`null`), input(`"{\"n\":2}"`), input(`{"n":"\ud83d"}`), input(`at noon`), input(`{"cut`), input(`[1]`),
			{Call: &think.Call{ID: "own", Name: "n", Invalid: "no such berth"}},
		}}, nil
	}, think.Config{})
	b.handle(record(question))
	r := b.response()
	for i, want := range []string{`{"n":1}`, `{}`, `{"n":2}`, `{"n":"\ufffd"}`} {
		require.Equal(t, want, string(r.ToolUses[i].Input))
		require.Empty(t, r.ToolUses[i].Invalid)
	}
	for i, want := range []string{"syntax error", "end before", "array"} {
		require.Equal(t, "{}", string(r.ToolUses[4+i].Input))
		require.Contains(t, r.ToolUses[4+i].Invalid, want)
	}
	require.Equal(t, "no such berth", r.ToolUses[7].Invalid)
}

func TestStateIsInTheHistoryOnlyForItsProvider(t *testing.T) {
	logs, written := observer.New(zap.DebugLevel)
	state := &think.State{Provider: "p", Model: "m", Data: topics.Raw(`{"signature":"c2ln"}`)}
	for name, reply := range map[string]think.Reply{
		"calls": {Blocks: []think.Block{{Text: "Let me look."}, {Call: &think.Call{ID: "c", Name: "n"}}}, State: state},
		"texts": {Blocks: []think.Block{{Text: "N4."}, {Text: "Or N5."}}, State: state},
	} {
		to := new(paper)
		model := streaming(t, to, deltas(nil, think.Delta{Text: "x", State: state}))
		streamed, err := model.Think(t.Context(), step)
		require.NoError(t, err)
		require.Equal(t, state, streamed.State)
		b := newBench(t, func(context.Context, think.Step) (think.Reply, error) { return reply, nil }, think.Config{
			Config: worker.Config{Logger: zap.New(logs)},
		})
		b.handle(record(question))
		r := b.response()
		found := 0
		for m, err := range topics.Messages(r.LastInputResponse) {
			require.NoError(t, err)
			require.NotContains(t, string(m.Content), "c2ln")
			require.Nil(t, think.StateOf(m, "p", "other"), name)
			require.Nil(t, think.StateOf(m, "other", "m"))
			if data := think.StateOf(m, "p", "m"); data != nil {
				require.Equal(t, string(state.Data), string(data))
				found++
			}
		}
		require.Equal(t, 1, found, name)
		for _, out := range to.all() {
			require.NotContains(t, string(out.Value), "c2ln", "an event")
		}
	}
	for _, entry := range written.All() {
		require.NotContains(t, entry.Message, "c2ln")
	}
	invalid := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{Blocks: []think.Block{{Text: "N4."}}, State: &think.State{Data: topics.Raw(`{`)}}, nil
	}, think.Config{})
	invalid.handle(record(question))
	require.NotContains(t, string(invalid.response().LastInputResponse), `"state"`)
	require.Nil(t, think.StateOf(topics.Message{}, "", ""))
}

func TestModelThatFailsAfterAnEmptyReplyFails(t *testing.T) {
	calls := 0
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		if calls++; calls == 1 {
			return think.Reply{}, nil
		}
		return think.Reply{}, errors.New("status 400")
	}, think.Config{})
	b.handle(record(question))
	_, reason := b.failure()
	require.Equal(t, "status 400", reason)
}
