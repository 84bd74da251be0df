package fold

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

const askedRequest = `{"history":[{"role":"user","content":"before"}],"latest_input":{"role":"user","content":"now"},` +
	`"user_id":"mira","cost":0.25}`

func thinking(c *Config) { c.ThinkResponses = true }

// answers are what went to the turn processor.
func (es effects) answers() ([]topics.ThinkResponse, []topics.ThinkFailure) {
	all := machinetest.Effects(es)
	return machinetest.Values[topics.ThinkResponse](all), machinetest.Values[topics.ThinkFailure](all)
}

func asking(t tester, request string, result topics.AgentResult) (*play, effects) {
	p := newPlay(t, thinking)
	p.handle(streamRecord(t, topics.AgentEvent{
		TurnID: "t", Seq: 1, Request: topics.Raw(request), Event: topics.Raw(startEvent("m")),
	}))
	p.handle(eventRecord(t, "t", 2, deltaEvent("m", "Hello")))
	p.handle(eventRecord(t, "t", 3, `{"type":"tool_call","data":{"id":"c","name":"n","input":{}}}`))
	p.handle(eventRecord(t, "t", 4, `{"type":"message","data":{"text":"there"}}`))
	p.handle(eventRecord(t, "t", 5, `{"type":"message","data":{"text":""}}`))
	r := result
	r.Usage = topics.Raw(`{"input":311,"output":58,"cost":0.5}`)
	return p, p.handle(terminalRecord(t, "t", 6, r))
}

func TestCompleteTurnEmitsAThinkResponse(t *testing.T) {
	p, es := asking(t, askedRequest, okResult("end_turn"))
	responses, failures := es.answers()
	require.Empty(t, failures)
	require.Len(t, responses, 1)
	r := responses[0]
	require.Equal(t, `[{"role":"user","content":"before"}]`, r.PreviousMessages.String())
	require.Equal(t, `{"role":"user","content":"now"}`, r.LastInputMessage.String())
	require.Equal(t, `[{"session_id":"s","user_id":"mira","role":"assistant","content":[{"type":"text","text":"Hello"},`+
		`{"type":"text","text":"there"}],"timestamp":"2026-09-21T14:13:20Z","metadata":null}]`, r.LastInputResponse.String())
	require.Equal(t, 0.75, *r.TotalSessionCost)
	require.Equal(t, 0.25, *r.PreviousSessionCost)
	require.EqualValues(t, 311, r.ThinkInputTokens)
	require.EqualValues(t, 58, r.ThinkOutputTokens)
	require.True(t, r.EndTurn)
	require.Nil(t, r.ToolUses)
	require.Len(t, p.parts, 1, "the request went with the turn")
	p.settle()
}

func TestFailedTurnEmitsAThinkFailure(t *testing.T) {
	_, es := asking(t, askedRequest, topics.AgentResult{})
	responses, failures := es.answers()
	require.Empty(t, responses)
	require.Len(t, failures, 1)
	require.Equal(t, `{"role":"user","content":"now"}`, failures[0].LatestInput.String())
	require.Equal(t, topics.ReasonRunFailed, *failures[0].Reason)
}

func TestPausedTurnEmitsNoAnswer(t *testing.T) {
	_, es := asking(t, askedRequest, okResult("paused"))
	responses, failures := es.answers()
	require.Empty(t, responses)
	require.Empty(t, failures)
	require.Len(t, es.batches(), 1)
}

func TestAnswerWithoutARequestHasNoConversation(t *testing.T) {
	p := newPlay(t, thinking)
	responses, _ := p.handle(terminalRecord(t, "t", 1, okResult("end_turn"))).answers()
	require.Len(t, responses, 1)
	require.Nil(t, responses[0].PreviousMessages)
	require.Nil(t, responses[0].LastInputMessage)
	require.Equal(t, "[]", responses[0].LastInputResponse.String())
	require.Zero(t, *responses[0].TotalSessionCost)
}

func TestTooLargeAnswerIsAFailure(t *testing.T) {
	_, es := asking(t, strings.Replace(askedRequest, "before", strings.Repeat("x", defaults().eventLimit()-200), 1),
		okResult("end_turn"))
	responses, _ := es.answers()
	require.Len(t, responses, 1, "what fits is sent")
	p := newPlay(t, thinking, func(c *Config) { c.RecordLimit, c.TurnLimit = 200<<10, 1<<20 })
	big := strings.Replace(askedRequest, "before", strings.Repeat("x", 100<<10), 1)
	p.handle(streamRecord(t, topics.AgentEvent{
		TurnID: "t", Seq: 1, Request: topics.Raw(big),
		Event: topics.Raw(`{"type":"message","data":{"text":"` + strings.Repeat("y", 100<<10) + `"}}`),
	}))
	responses, failures := p.handle(terminalRecord(t, "t", 2, okResult("end_turn"))).answers()
	require.Empty(t, responses)
	require.Equal(t, topics.ReasonTooLarge, *failures[0].Reason)
	require.Equal(t, "complete", outcomeOf(p.only("t")), "the batch is whole")
}

func TestRequestIsKeptOnlyForThinkResponses(t *testing.T) {
	p := newPlay(t)
	p.handle(streamRecord(t, topics.AgentEvent{
		TurnID: "t", Seq: 1, Request: topics.Raw(askedRequest), Event: topics.Raw(startEvent("m")),
	}))
	require.Empty(t, p.parts)
}

func TestFailureThatCannotNameItsInputIsNotWritten(t *testing.T) {
	cancel := controlReceived{record("c"), topics.Control{Action: topics.ActionCancel}}
	endings := map[string]func(p *play) effects{
		"cancelled by a control record": func(p *play) effects { return p.handle(cancel) },
		"cancelled by its run": func(p *play) effects {
			return p.handle(terminalRecord(p.tb, "t", 2, okResult("cancelled")))
		},
		"failed": func(p *play) effects { return p.handle(terminalRecord(p.tb, "t", 2, topics.AgentResult{})) },
		"gap":    func(p *play) effects { return p.handle(terminalRecord(p.tb, "t", 3, okResult("end_turn"))) },
		"silent": func(p *play) effects { return p.until(p.config.Silence) },
		"evicted": func(p *play) (es effects) {
			for i := range p.config.OpenTurns {
				p.now = p.now.Add(time.Second)
				es = p.handle(eventRecord(p.tb, "u"+strconv.Itoa(i), 1, startEvent("m")))
			}
			return es
		},
	}
	for kind, request := range map[string]topics.Raw{
		"no request": nil, "no input": topics.Raw(`{"history":[]}`), "null": topics.Raw(`{"latest_input":null}`),
		"no message": topics.Raw(`{"latest_input":"now"}`),
	} {
		for name, end := range endings {
			t.Run(name+", "+kind, func(t *testing.T) {
				p := newPlay(t, thinking)
				p.handle(streamRecord(t, topics.AgentEvent{
					TurnID: "t", Seq: 1, Request: request, Event: topics.Raw(startEvent("m")),
				}))
				es := end(p)
				require.Len(t, es.batches(), 1)
				require.NotEqual(t, topics.BatchComplete, es.batches()[0].State)
				responses, failures := es.answers()
				require.Empty(t, responses)
				require.Empty(t, failures, "the turn processor would fail whichever step is open")
			})
		}
	}
}

func TestCancelledTurnWithARequestNamesItsInput(t *testing.T) {
	p := newPlay(t, thinking)
	p.handle(streamRecord(t, topics.AgentEvent{
		TurnID: "t", Seq: 1, Request: topics.Raw(askedRequest), Event: topics.Raw(startEvent("m")),
	}))
	_, failures := p.handle(controlReceived{
		record("c"), topics.Control{Action: topics.ActionCancel},
	}).answers()
	require.Len(t, failures, 1)
	require.Equal(t, `{"role":"user","content":"now"}`, failures[0].LatestInput.String())
	require.Equal(t, topics.ReasonCancelled, *failures[0].Reason)
}

func TestTooLargeRequestIsKeptWithoutItsHistory(t *testing.T) {
	large := strings.Replace(askedRequest, "before", strings.Repeat("x", defaults().eventLimit()), 1)
	_, es := asking(t, large, topics.AgentResult{})
	_, failures := es.answers()
	require.Len(t, failures, 1)
	require.Equal(t, `{"role":"user","content":"now"}`, failures[0].LatestInput.String())
	_, es = asking(t, large, okResult("end_turn"))
	responses, _ := es.answers()
	require.Len(t, responses, 1)
	require.Equal(t, `{"role":"user","content":"now"}`, responses[0].LastInputMessage.String())
	require.Nil(t, responses[0].PreviousMessages)
	require.Equal(t, "mira", *responses[0].UserID)
	require.Equal(t, 0.75, *responses[0].TotalSessionCost)

	p, es := asking(t, strings.Replace(large, "now", strings.Repeat("y", defaults().eventLimit()), 1),
		topics.AgentResult{})
	_, failures = es.answers()
	require.Empty(t, failures, "the input itself does not fit")
	p.settle()
}
