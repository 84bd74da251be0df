package turn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// eventsExist says that the topic of the events exists; whether a turn has a stream depends on its worker.
func eventsExist(r *rules) { r.EventsExist = true }

func TestFirstResponseThatNamesItsEventsBeginsTheStream(t *testing.T) {
	p := newPlay(t)
	out := p.send("message-input", requestMessage("hi", "r1"))
	asked := the[enriched](t, out)
	require.Empty(t, asked.TurnID)
	require.Empty(t, stream(out))

	turn := p.state().Turn.Message.TurnId
	out = p.send("think-request-response", response(asked, calling("t1")), header(topics.HeaderEvents, "1790000000001/7/tool_use"))
	require.Equal(t, []string{
		`1/1 {"type":"step_start","step":1}`,
		`1/2 settles 1790000000001/7 {"type":"step_end","step":1}`,
	}, stream(out))
	first := emitted[streamed](out)[0]
	require.Equal(t, []any{turn, `{"latest_input":{"metadata":{"request_id":"r1"}}}`}, []any{first.TurnID, string(first.Request)})

	out = p.result("t1", "first")
	asked = the[enriched](t, out)
	require.Equal(t, []any{turn, int64(2)}, []any{asked.TurnID, asked.Step})
	out = p.respond(asked, saying("hello"))
	require.Equal(t, []string{`2.1/1 {"type":"message","text":"hello"}`}, replies(out))
	require.Len(t, stream(out), 1)
}

func TestTurnWhoseWorkersWriteNoEventsHasNone(t *testing.T) {
	for name, rules := range map[string]func(*rules){"topic": eventsExist, "no topic": func(*rules) {}} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, rules)
			asked := p.ask("hi")
			require.Empty(t, stream(p.send("think-request-response", response(asked, calling("t1")))))
			asked = the[enriched](t, p.result("t1", "first"))
			require.Empty(t, asked.TurnID)
			require.Empty(t, stream(p.send("think-request-response", response(asked, saying("hello")),
				header(topics.HeaderEvents, "1790000000001/7/end_turn"))), "its stream would have no beginning")
		})
	}
}

// A worker of the library leaves its events to the turn. Another one may write a stream that the turn does not know.
func TestTurnWritesTheEventsOfAModelThatDoesNotStream(t *testing.T) {
	for name, rules := range map[string]func(*rules){"topic": eventsExist, "no topic": func(*rules) {}} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, rules)
			asked := p.ask("hi")
			out := p.send("think-request-response", response(asked, saying("hello")), header(topics.HeaderEvents, topics.NoEvents))
			if name == "no topic" {
				require.Empty(t, stream(out))
				return
			}
			require.Equal(t, []string{`1.1/1 {"type":"message","text":"hello"}`}, replies(out))
			require.Len(t, stream(out), 2)
			require.Equal(t, `1/1 {"type":"step_start","step":1}`, stream(out)[0])
		})
	}
}

// The worker may have died in the middle of the first step.
func TestTurnWithoutAResponseEndsTheStreamThatItsWorkerMayHaveBegun(t *testing.T) {
	for name, rules := range map[string]func(*rules){"topic": eventsExist, "no topic": func(*rules) {}} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, rules)
			p.ask("hi")
			ends := emitted[streamed](p.send("session-control", `{"action":"cancel"}`))
			if name == "no topic" {
				require.Empty(t, ends)
				return
			}
			require.Len(t, ends, 1)
			require.True(t, ends[0].IfBegun)
			require.Equal(t, topics.CodeCancelled, ends[0].Result.Code)
		})
	}
}

func TestProcessorNamesTheTopicsThatAFieldNeeds(t *testing.T) {
	for option, c := range map[string]Config{
		"WithEvents": {Events: true}, "WithGates": {Gates: true}, "WithCompaction": {Compaction: &Compaction{}},
		"WithMemoir": {Memoir: &Memoir{}}, "WithCosts": {Costs: true},
	} {
		t.Run(option, func(t *testing.T) {
			graph, err := Graph("pilot", c)
			require.NoError(t, err)
			catalog, err := topics.For("pilot")
			require.NoError(t, err)
			_, err = processors.New([]string{"localhost:9092"}, graph, processors.WithTopics(catalog))
			require.ErrorIs(t, err, processors.ErrConfig)
			require.ErrorContains(t, err, "the graph needs topic pilot-")
			require.ErrorContains(t, err, "topics."+option+" is missing")
		})
	}
}
