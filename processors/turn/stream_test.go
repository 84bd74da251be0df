package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// withEvents switches the event stream on.
func withEvents(r *rules) { r.Events = true }

// stream returns the turn's records among some effects: the attempt that is settled, and the event or the result.
func stream(es effects) (list []string) {
	for _, e := range emitted[streamed](es) {
		line := fmt.Sprintf("%d/%d ", e.Step, e.Seq)
		if e.Settles != nil {
			line += fmt.Sprintf("settles %d/%d ", e.Settles.Attempt, e.Settles.Seq)
		}
		if e.Result != nil {
			_, result, _ := strings.Cut(string(topics.EncodeAgentEvent(topics.AgentEvent{Result: e.Result})), `"result":`)
			list = append(list, line+strings.TrimSuffix(result, "}"))
			continue
		}
		data, _ := topics.Lookup(e.Event, "data")
		list = append(list, line+string(data))
	}
	return list
}

// replies returns the events that the turn writes for a worker that wrote none.
func replies(es effects) (list []string) {
	for _, e := range emitted[replyStreamed](es) {
		data, _ := topics.Lookup(e.Event, "data")
		list = append(list, fmt.Sprintf("%d.%d/%d %s", e.Step, e.Attempt, e.Seq, data))
	}
	return list
}

func TestTurnWritesNoEventsWithoutTheOption(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	require.Empty(t, asked.TurnID)
	require.Empty(t, stream(p.respond(asked, saying("hello"))))
}

// The worker of the first step has written its events and names them; that of the second has written none.
func TestStreamOfATurnHasItsStepsAndItsEnd(t *testing.T) {
	p := newPlay(t, withEvents)
	out := p.send("message-input", requestMessage("hi", "r1"))
	asked := the[enriched](t, out)
	turn := p.state().Turn.Message.TurnId
	require.Equal(t, []any{turn, int64(1)}, []any{asked.TurnID, asked.Step})
	require.Equal(t, []string{`1/1 {"type":"step_start","step":1}`}, stream(out))
	first := the[streamed](t, out)
	require.Equal(t, `{"latest_input":{"metadata":{"request_id":"r1"}}}`, string(first.Request))
	require.Equal(t, []any{"s1", turn, topics.AuthorTurn, p.now.Add(p.rules.ThinkTimeout).UnixMilli()},
		[]any{first.SessionID, first.TurnID, first.Author, first.UntilMS})

	p.now = p.now.Add(time.Second)
	out = p.send("think-request-response", response(asked, `"think_input_tokens":10,"think_output_tokens":2,`+
		callingFor(wanted{"t1", "look", `{"at":1}`}, wanted{"t2", "look", `{}`})), header(topics.HeaderEvents, "1790000000001/7/tool_use"))
	require.Equal(t, []string{`1/2 settles 1790000000001/7 {"type":"step_end","step":1}`}, stream(out))
	require.Empty(t, replies(out))

	require.Equal(t, []string{
		`1/8 {"type":"tool_result","id":"t2","output":"{\"said\":\"second\"}","isError":false,"data":{"said":"second"}}`,
	}, stream(p.result("t2", "second")))
	out = p.result("t1", "first")
	require.Equal(t, []string{
		`1/5 {"type":"tool_result","id":"t1","output":"{\"said\":\"first\"}","isError":false,"data":{"said":"first"}}`,
		`2/1 {"type":"step_start","step":2}`,
	}, stream(out))
	require.Nil(t, emitted[streamed](out)[1].Request)

	asked = the[enriched](t, out)
	require.Equal(t, int64(2), asked.Step)
	out = p.respond(asked, saying("hello"))
	require.Equal(t, []string{`2.1/1 {"type":"message","text":"hello"}`}, replies(out))
	require.Equal(t, []string{
		`2/1000000 settles 1/1 {"ok":true,"stopReason":"end_turn","usage":{"input":17,"output":5,"total":22,"cost":1}}`,
	}, withoutCost(stream(out)))
	require.Len(t, emitted[answered](out), 1)
}

// withoutCost replaces the cost of a turn, which the tests' responses differ in.
func withoutCost(list []string) []string {
	for i, line := range list {
		if before, _, ok := strings.Cut(line, `,"cost":`); ok {
			list[i] = before + `,"cost":1}}`
		}
	}
	return list
}

func TestEveryEndOfATurnEndsItsStream(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p *play, asked enriched) effects
		want string
	}{
		"failure": {func(p *play, asked enriched) effects {
			return p.send("think-dlq", `{"latest_input":`+string(asked.LatestInput)+`}`,
				header(topics.HeaderErrorReason, "no quota"))
		}, `1/1000000 {"ok":false,"error":"the model's worker gave up: no quota","code":"think_failed"}`},
		"timeout": {
			func(p *play, _ enriched) effects { return p.wait(p.rules.ThinkTimeout) },
			`1/1000000 {"ok":false,"error":"the model did not respond within 600000ms","code":"think_timeout"}`,
		},
		"cancel": {
			func(p *play, _ enriched) effects { return p.send("session-control", `{"action":"cancel"}`) },
			`1/1000000 {"ok":true,"stopReason":"cancelled","error":"cancelled","code":"cancelled"}`,
		},
		"purge": {
			func(p *play, _ enriched) effects { return p.send("session-control", `{"action":"purge"}`) },
			`1/1000000 {"ok":true,"stopReason":"cancelled","error":"cancelled","code":"cancelled"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withEvents)
			asked := p.ask("hi")
			require.Equal(t, []string{c.want}, stream(c.end(p, asked)))
		})
	}
}

func TestTurnThatEndsBeforeItsFirstStepHasAStream(t *testing.T) {
	p := newPlay(t, withEvents, func(r *rules) { r.MaxCost = 1 })
	p.rewrite(func(s *turnrow.State) { s.Cost = new(2.0) })
	out := p.send("message-input", requestMessage("hi", "r1"))
	require.Len(t, stream(out), 1)
	require.Contains(t, stream(out)[0], `1/1000000 {"ok":false`)
	require.Equal(t, `{"latest_input":{"metadata":{"request_id":"r1"}}}`, string(the[streamed](t, out).Request))
}

func TestCallsThatEndWithTheirTurnHaveResultsInTheStream(t *testing.T) {
	p := newPlay(t, withEvents)
	p.respond(p.ask("hi"), calling("t1"))
	lines := stream(p.send("session-control", `{"action":"cancel"}`))
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"isError":true`)
	require.Contains(t, lines[1], `"stopReason":"cancelled"`)
}

func TestStreamShowsApprovals(t *testing.T) {
	p := newPlay(t, withEvents, withPolicy(paying()))
	out := p.respond(p.ask("hi"), callingFor(wanted{"t1", "pay", payment}))
	g := the[gateRequested](t, out)
	lines := stream(out)
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], `1/3 {"type":"interaction_request","id":"`+g.GateID+`","kind":"user_approval"`)
	require.Contains(t, lines[1], payment)
	require.Equal(t, p.state().Turn.Calls[0].Gate.ExpiresMs, emitted[streamed](out)[1].UntilMS)
	lines = stream(p.send("gate-outcomes", gateEnd(g, topics.GateApproved)))
	require.Equal(t, []string{
		`1/4 {"type":"interaction_response","id":"` + g.GateID + `","kind":"user_approval","payload":{"approved":true,"toolCallId":"t1"}}`,
	}, lines)
	require.Contains(t, stream(p.resultFrom("pay", "t1", "paid"))[0], `1/5 {"type":"tool_result","id":"t1"`)
}

// The time in which the tool must answer begins when its call is approved, long after its step began.
func TestStreamAnnouncesTheTimeOfAnApprovedTool(t *testing.T) {
	p := newPlay(t, withEvents, withPolicy(paying()), func(r *rules) { r.ToolTimeout = time.Minute })
	out := p.respond(p.ask("hi"), callingFor(wanted{"t1", "pay", payment}))
	require.Empty(t, p.wait(10*time.Minute))
	out = p.send("gate-outcomes", gateEnd(the[gateRequested](t, out), topics.GateApproved))
	require.Len(t, emitted[called](out), 1)
	require.Equal(t, p.now.Add(time.Minute).UnixMilli(), the[streamed](t, out).UntilMS)
}

func TestRefusedCallIsDeniedInTheStream(t *testing.T) {
	p := newPlay(t, withEvents, withPolicy(paying()))
	out := p.respond(p.ask("hi"), callingFor(wanted{"t1", "pay", payment}))
	lines := stream(p.send("gate-outcomes", gateEnd(the[gateRequested](t, out), topics.GateDenied)))
	require.Contains(t, lines[0], `"approved":false`)
	require.Contains(t, lines[1], `"isError":true,"denied":true`)
}

// A text of a response is one event, a long one several, which fold joins; and a result that is too large for an event is replaced.
func TestEventsFitIntoRecords(t *testing.T) {
	p := newPlay(t, withEvents)
	long := strings.Repeat("ü", 100_000)
	out := p.respond(p.ask("hi"), saying(long))
	joined := ""
	for _, e := range emitted[replyStreamed](out) {
		require.Less(t, len(e.Event), 70<<10)
		data, _ := topics.Lookup(e.Event, "data")
		joined += textMember(data, "delta")
	}
	require.Equal(t, long, joined)

	p.respond(p.ask("more"), calling("t1"))
	large := strings.Repeat(`\\`, 230_000)
	events := emitted[streamed](p.result("t1", large))
	require.NotEmpty(t, events)
	require.Less(t, len(events[0].Event), p.rules.RecordLimit)
	require.Contains(t, string(events[0].Event), "too large for an event")
}

// An ID or a name can be as large as a record, and its control characters are six times as long in an event as in the row.
func TestCallWithALongIDOrNameIsNotInTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		id, tool func(limit int) string
		results  int
	}{
		"ID":   {func(limit int) string { return strings.Repeat(`\u0001`, limit*9/10/6) }, func(int) string { return "look" }, 0},
		"name": {func(int) string { return "t1" }, func(limit int) string { return strings.Repeat(`\u0001`, limit*9/10/6) }, 1},
	} {
		for _, written := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " events written by the worker: ", written), func(t *testing.T) {
				p := newPlay(t, withEvents)
				var opts []recordOption
				if written {
					opts = append(opts, header(topics.HeaderEvents, "1790000000001/7/tool_use"))
				}
				out := p.send("think-request-response", response(p.ask("hi"), `"last_input_response":[{"role":"assistant","content":[]}],`+
					`"tool_uses":[{"tool_use_id":"`+c.id(p.rules.RecordLimit)+`","name":"`+c.tool(p.rules.RecordLimit)+`","input":{}}],"end_turn":false`), opts...)
				require.Empty(t, replies(out))
				results := 0
				for _, e := range emitted[streamed](out) {
					require.Less(t, len(e.Event), p.rules.eventLimit())
					if strings.Contains(string(e.Event), "tool_result") {
						results++
					}
				}
				require.Equal(t, c.results, results)
				require.Equal(t, topics.CodeTooLarge, the[answered](t, out).Error.Code, "the next step does not fit into a record")
			})
		}
	}
}

func TestStreamOfADamagedRowEnds(t *testing.T) {
	p := newPlay(t, withEvents)
	p.ask("hi")
	out := abandon(p.state(), p.key, internal, p.now, p.rules)
	require.Contains(t, stream(effects(out.Effects))[0], `"code":"internal"`)
}
