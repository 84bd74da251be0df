package turn

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// A callback token outlives its call. When the call has timed out, the model may give the same tool_use_id to a call of another
// tool, and the holder of the token can still send its result.

// callingTool is a response that calls one tool.
func callingTool(id, name string) string { return strings.ReplaceAll(calling(id), "look", name) }

func resultOfTool(id, name, text string) string {
	return strings.Replace(toolResult(id, text), `"look"`, fmt.Sprintf("%q", name), 1)
}

// timedOut is a session in which the call t1 of the tool weather has timed out, and t1 of the tool pay is open.
func timedOut(t *testing.T, sameTurn bool) (p *play, weather string) {
	p = newPlay(t)
	weather = p.respond(p.ask("the weather?"), callingTool("t1", "weather")).ids()[0]
	asked := the[enriched](t, p.wait(p.rules.ToolTimeout))
	if !sameTurn {
		p.respond(asked, saying("I do not know."))
		asked = p.ask("pay the bill")
	}
	require.Len(t, emitted[called](p.respond(asked, callingTool("t1", "pay"))), 1)
	return p, weather
}

func TestLateResultOfAnEarlierCallIsDeadLettered(t *testing.T) {
	for name, sameTurn := range map[string]bool{"in the same turn": true, "in another turn": false} {
		t.Run(name, func(t *testing.T) {
			p, weather := timedOut(t, sameTurn)
			late := resultOfTool("t1", "weather", "forged")
			require.Equal(t, []string{reasonCallEnded},
				p.send("tool-use-result", late, header(topics.HeaderID, weather+"/callback/1")).letters())
			require.Equal(t, []string{reasonCallEnded}, p.send("tool-use-result", resultOfTool("t1", "pay", "forged"),
				header(topics.HeaderID, weather+"/callback/2")).letters(), "whatever tool it names")
			require.Equal(t, []string{reasonOtherTool}, p.send("tool-use-result", late).letters(), "without the ID of a call")
			require.Empty(t, p.send("tool-use-dlq", `{"tool_use_id":"t1","name":"weather"}`), "nor does a failure end it")
			require.Len(t, p.state().Turn.Calls, 1)

			out := p.send("tool-use-result", resultOfTool("t1", "pay", "paid"))
			require.Equal(t, "pay", *the[completed](t, out).Results[0].Name)
			has(t, string(the[toolMessage](t, out).Content), `{"said":"paid"}`)
		})
	}
}

func TestResultWithoutANameEndsTheOpenCall(t *testing.T) {
	for _, name := range []string{`null`, `""`, `" "`} {
		p, _ := timedOut(t, false)
		out := p.send("tool-use-result", `{"tool_use_id":"t1","name":`+name+`,"result":{"said":"paid"}}`)
		has(t, string(the[toolMessage](t, out).Content), "paid")
	}
}

// A result may arrive before the response that asks for it. One of another tool must neither end the call nor take the place of
// the call's own result.
func TestHeldResultOfAnotherToolIsDeadLettered(t *testing.T) {
	for name, topic := range map[string]string{"result": "tool-use-result", "failure": "tool-use-dlq"} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			asked := p.ask("pay the bill")
			require.Empty(t, p.send(topic, resultOfTool("t1", "weather", "forged")))
			require.Empty(t, p.send("tool-use-result", resultOfTool("t1", "pay", "paid")))
			out := p.respond(asked, callingTool("t1", "pay"))
			has(t, string(the[toolMessage](t, out).Content), `{"said":"paid"}`)
			require.Empty(t, p.state().Turn.Held)
			if topic == "tool-use-result" {
				require.Equal(t, []string{reasonOtherTool}, out.letters())
			} else {
				require.Empty(t, out.letters(), "it is a dead letter already")
			}
		})
	}
}

func TestRowOfAnOlderBuildThatHoldsAResultOfAnotherTool(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("pay the bill")
	p.rewrite(func(s *turnrow.State) {
		s.Turn.Held = []*turnrow.Held{{
			ToolUseId: "t1", Value: []byte("{"), Result: &turnrow.Result{ToolUseId: ptr("t1"), Name: ptr("weather"), Result: []byte(`{}`)},
		}}
	})
	require.Equal(t, []string{reasonOtherTool}, p.respond(asked, callingTool("t1", "pay")).letters())
	require.Len(t, p.state().Turn.Calls, 1)
}

// After a crash that lost the row of a call, its late result is held for it, and the call of another step is not ended.
func TestLateResultAfterALostRowEndsOnlyItsCall(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("the weather?")
	row, parts := p.row, maps.Clone(p.parts)
	weather := p.respond(asked, callingTool("t1", "weather")).ids()[0]
	p.row, p.parts = row, parts

	late := resultOfTool("t1", "weather", "rain")
	require.Empty(t, p.send("tool-use-result", late, header(topics.HeaderID, weather+"/callback/1")))
	out := p.repeat(p.past[1])
	has(t, string(the[toolMessage](t, out).Content), "rain")
	require.Len(t, emitted[called](p.respond(the[enriched](t, out), callingTool("t1", "pay"))), 1)
	require.Equal(t, []string{reasonCallEnded},
		p.send("tool-use-result", late, header(topics.HeaderID, weather+"/callback/2")).letters())
	require.Len(t, p.state().Turn.Calls, 1)
}
