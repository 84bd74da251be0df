package turn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func superseding(after time.Duration) func(*rules) {
	return func(r *rules) { r.Policy, r.SupersedeAfter = Supersede, after }
}

func TestSilentStepIsSupersededByAMessageThatArrives(t *testing.T) {
	p := newPlay(t, superseding(time.Minute))
	p.ask("one")
	require.Empty(t, p.wait(2*time.Minute), "no message waits")
	require.Empty(t, p.send("message-input", message("two")), "the answer to the step may be on its topic")
	out := p.wait(0)
	o := the[answered](t, out)
	require.Equal(t, topics.CodeThinkTimeout, o.Error.Code)
	require.Equal(t, "the model did not respond within 60000ms, and another message waits", o.Error.Message)
	require.Contains(t, string(the[enriched](t, out).LatestInput), "two")
}

func TestSilentStepIsSupersededByAMessageThatWaits(t *testing.T) {
	p := newPlay(t, superseding(time.Minute))
	p.ask("one")
	require.Empty(t, p.wait(30*time.Second))
	require.Empty(t, p.send("message-input", message("two")))
	require.Empty(t, p.wait(30*time.Second-time.Millisecond))
	out := p.wait(time.Millisecond)
	require.Equal(t, topics.CodeThinkTimeout, the[answered](t, out).Error.Code)
	next := the[enriched](t, out)
	require.Empty(t, p.wait(9*time.Minute), "no message waits for the next turn")
	require.Equal(t, "done", the[answered](t, p.respond(next, saying("done"))).Content)
}

func TestSupersedeLeavesRunningToolsAndOtherPoliciesAlone(t *testing.T) {
	t.Run("tools", func(t *testing.T) {
		p := newPlay(t, superseding(time.Minute))
		p.respond(p.ask("one"), calling("t1"))
		p.send("message-input", message("two"))
		require.Empty(t, p.wait(4*time.Minute))
		require.Len(t, emitted[enriched](p.result("t1", "x")), 1)
	})
	t.Run("queue", func(t *testing.T) {
		p := newPlay(t, func(r *rules) { r.SupersedeAfter = time.Minute })
		p.ask("one")
		p.send("message-input", message("two"))
		require.Empty(t, p.wait(9*time.Minute))
	})
	t.Run("a limit above the think timeout", func(t *testing.T) {
		p := newPlay(t, superseding(time.Hour))
		p.ask("one")
		p.send("message-input", message("two"))
		o := the[answered](t, p.wait(p.rules.ThinkTimeout))
		require.Equal(t, "the model did not respond within 600000ms", o.Error.Message)
	})
}

func TestSupersedeNeedsALimit(t *testing.T) {
	_, err := Graph(agent, Config{Policy: Supersede})
	require.ErrorIs(t, err, ErrConfig)
}

func TestDeadlineOfATurnTravelsWithItsRecords(t *testing.T) {
	p := newPlay(t)
	step := emits[enriched](p.send("message-input", message("hi")))[0]
	require.Equal(t, p.now.Add(p.rules.ThinkTimeout).UnixMilli(), step.DeadlineMS)
	out := p.respond(step.Value.(enriched), `"tool_uses":[{"tool_use_id":"t1","name":"look"},{"tool_use_id":"t2"}]`)
	require.Equal(t, p.now.Add(p.rules.ToolTimeout).UnixMilli(), emits[called](out)[0].DeadlineMS)
	require.Zero(t, emits[refused](out)[0].DeadlineMS)
	out = p.result("t1", "x")
	require.Zero(t, emits[toolMessage](out)[0].DeadlineMS)
	require.Zero(t, emits[answered](p.respond(the[enriched](t, out), saying("hello")))[0].DeadlineMS)
}

// emits returns the records with values of a type.
func emits[V value](es effects) (list []emit) {
	for _, effect := range es {
		if e, ok := effect.(emit); ok {
			if _, ok := e.Value.(V); ok {
				list = append(list, e)
			}
		}
	}
	return list
}
