package turn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func withLatencies(r *rules) { r.Latencies = true }

func TestCallsThatRanHaveALatency(t *testing.T) {
	p := newPlay(t, withLatencies)
	p.respond(p.ask("one"), calling("t1", "t2", "t3"))
	p.now = p.now.Add(time.Second)
	es := p.result("t1", "N4")
	took := the[toolTook](t, es)
	require.Equal(t, []any{"look", int64(5), "s1", ""}, []any{*took.ToolName, took.LatencyMS, *took.SessionID, took.Status})
	require.Equal(t, "look", es.emits()[0].Key)
	require.Equal(t, outputID(p.state().Turn.Message.TurnId, 1, took, 0), es.emits()[0].ID)

	failed := the[toolTook](t, p.send("tool-use-dlq", `{"tool_use_id":"t2","name":"look"}`, header(topics.HeaderErrorReason, "broken")))
	require.Equal(t, statusError, failed.Status)
	require.Equal(t, int64(1000), failed.LatencyMS, "since it was handed out")
	timedOut := the[toolTook](t, p.wait(time.Hour))
	require.Equal(t, statusError, timedOut.Status)
	require.Equal(t, defaults().ToolTimeout.Milliseconds(), timedOut.LatencyMS)
	require.Empty(t, emitted[toolTook](p.result("t3", "late")))
}

func TestCallsThatDidNotRunHaveNoLatency(t *testing.T) {
	p := newPlay(t, withLatencies, func(r *rules) { r.Agent, r.Approval = agent, modelPolicy() })
	es := p.respond(p.ask("one"), `"last_input_response":[],"tool_uses":[{"tool_use_id":"t0","name":"pay","input":{}},`+
		`{"tool_use_id":"t1","name":"","input":{}},{"tool_use_id":"t2","name":"look","input":{}}],"end_turn":false`)
	require.Empty(t, emitted[toolTook](es))
	es = p.send("session-control", `{"action":"cancel"}`)
	require.Equal(t, "look", *the[toolTook](t, es).ToolName, "the others were not handed out")
}

func TestRefusedCallHasNoLatency(t *testing.T) {
	p := newPlay(t, withLatencies, func(r *rules) { r.Agent, r.Approval = agent, modelPolicy() })
	es := p.respond(p.ask("one"), `"last_input_response":[],"tool_uses":[{"tool_use_id":"t0","name":"pay","input":{}}],"end_turn":false`)
	es = p.send("gate-outcomes", gateEnd(the[gateRequested](t, es), topics.GateDenied))
	require.Len(t, emitted[enriched](es), 1)
	require.Empty(t, emitted[toolTook](es))
}
