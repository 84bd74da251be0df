package invoke

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// A turn with steps does not pause: its call waits for the gate that the turn has opened. A worker's request opens none.
func TestAnswerDecidesTheGateOfATurnWithSteps(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.deaf = true
	gate, digest := topics.GateID("s", "t", "t/1/tool-use/0"), topics.ArgsSHA256(topics.Raw(`{"eur": 1}`))
	asks := func(author, id string, seq int64) topics.AgentEvent {
		e := ofTurn(1, seq, "")
		e.Author, e.Attempt = author, 1
		e.Event = topics.Raw(`{"type":"interaction_request","data":{"id":"` + id + `","kind":"user_approval","payload":{"toolCallId":"` + id +
			`-call","argsSha256":"` + digest + `","toolCall":{"name":"pay"}}}}`)
		return e
	}
	response := ofTurn(1, 6, "")
	response.Event = topics.Raw(`{"type":"interaction_response","data":{"id":"` + gate + `","kind":"user_approval","payload":{"approved":true}}}`)
	end := settling(topics.AgentEvent{
		SessionID: "s", TurnID: "t", Author: topics.AuthorTurn, Step: 2, Attempt: 1, Seq: 1_000_000,
		Result: &topics.AgentResult{OK: true, StopReason: &endTurn},
	}, 9, 0)
	decisions := make(chan topics.GateDecision, 10)
	g.follow(func(r processors.Inbound) {
		d := g.catalog.GateDecisions.Codec().Unmarshal(r.Value).Value
		decisions <- d
		out, err := processors.OutboundOf(g.catalog.GateOutcomes, "s", topics.GateOutcome{
			GateID: gate, SessionID: "s", TurnID: "t", CallID: "t/1/tool-use/0", Status: topics.GateApproved, Cause: topics.CauseHuman,
			DecisionID: d.DecisionID,
		}, "")
		if err == nil {
			err = g.to.Publish(context.Background(), out)
		}
		if err != nil {
			t.Error(err)
		}
		g.broker.write(response, ofTurn(2, 1, "step_start"), end)
	}, g.catalog.GateDecisions.Name())
	g.broker.write(
		ofTurn(1, 1, "step_start"), ofWorker(1, 5, 1, "dead"), ofWorker(1, 7, 1, "I pay."), asks("", "worker", 2),
		settling(ofTurn(1, 2, "step_end"), 7, 1), asks(topics.AuthorTurn, gate, 4))
	s := g.site()
	answer := func(token string) got {
		body := strings.Replace(answerBody("other", `{}`, `{"approved":true,"interactionToken":"`+token+`"}`), `"s-1"`, `"s"`, 1)
		return s.invoke(body, "Accept", "text/event-stream")
	}
	require.Equal(t, http.StatusConflict, answer("worker").status)
	rest := answer(gate)
	require.Equal(t, http.StatusOK, rest.status, rest.body)
	require.Equal(t, "t", rest.header.Get(HeaderTurn))
	require.Contains(t, rest.body, "interaction_response")
	require.NotContains(t, rest.body, "I pay.")
	d := <-decisions
	require.Equal(t, gate, d.GateID)
	require.Equal(t, topics.VerdictApprove, d.Verdict)
	require.Equal(t, digest, d.ArgsSHA256)
	require.Equal(t, rest.body, answer(gate).body, "a repeated answer")
	require.Empty(t, decisions)
}

// The arguments were too long for the event: who approves them has read them elsewhere.
func TestArgumentsThatTheRequestDoesNotShowAreApprovedWithTheirDigestOnly(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.deaf = true
	gate, digest := topics.GateID("s", "t", "t/1/tool-use/0"), topics.ArgsSHA256(topics.Raw(`{"eur": 1}`))
	asks := ofTurn(1, 4, "")
	asks.Author, asks.Attempt = topics.AuthorTurn, 1
	asks.Event = topics.Raw(`{"type":"interaction_request","data":{"id":"` + gate + `","kind":"user_approval","payload":{"toolCallId":"c","truncated":true,
		"bytes":900000,"url":"/api/gates/` + gate + `","argsSha256":"` + digest + `","toolCall":{"name":"pay"}}}}`)
	decisions := make(chan topics.GateDecision, 10)
	g.follow(func(r processors.Inbound) {
		d := g.catalog.GateDecisions.Codec().Unmarshal(r.Value).Value
		decisions <- d
		out, err := processors.OutboundOf(g.catalog.GateOutcomes, "s", topics.GateOutcome{
			GateID: gate, SessionID: "s", TurnID: "t", CallID: "t/1/tool-use/0", Status: topics.GateDenied, Cause: topics.CauseHuman,
			DecisionID: d.DecisionID,
		}, "")
		if err == nil {
			err = g.to.Publish(context.Background(), out)
		}
		if err != nil {
			t.Error(err)
		}
	}, g.catalog.GateDecisions.Name())
	g.broker.write(ofTurn(1, 1, "step_start"), ofWorker(1, 5, 1, "I pay."), settling(ofTurn(1, 2, "step_end"), 5, 1), asks)
	s := g.site()
	answer := func(more string) got {
		body := strings.Replace(answerBody("other", `{}`, `{"approved":true,"interactionToken":"`+gate+`"`+more+`}`), `"s-1"`, `"s"`, 1)
		return s.invoke(body, "Accept", "text/event-stream")
	}
	blind := answer("")
	require.Equal(t, http.StatusConflict, blind.status, blind.body)
	require.Contains(t, blind.body, "read the whole request first")
	require.Equal(t, http.StatusPreconditionFailed, answer(`,"argsSha256":"00"`).status)
	require.Empty(t, decisions)
	answer(`,"argsSha256":"` + digest + `"`)
	d := <-decisions
	require.Equal(t, []any{topics.VerdictApprove, digest}, []any{d.Verdict, d.ArgsSHA256})
}
