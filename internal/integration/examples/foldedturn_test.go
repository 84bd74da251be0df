package examples

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// Folded turns feed the turn processor: message in, enriched message to the agent, its events in, output.
func TestFoldedTurnAnswersTheMessage(t *testing.T) {
	c, err := topics.For("quay")
	require.NoError(t, err)
	folding, err := fold.Graph("quay", fold.Config{ThinkResponses: true})
	require.NoError(t, err)
	turns, err := turn.Graph("quay", turn.Config{})
	require.NoError(t, err)
	d := processortest.New(t, time.UnixMilli(1_790_000_000_000).UTC(), turns, folding)
	messages, events := processortest.In(d, c.MessageInput), processortest.In(d, c.AgentEvents)
	enriched, outputs := processortest.Out(d, c.EnrichedMessageInput), processortest.Out(d, c.MessageOutput)
	processortest.Out(d, c.ThinkRequestResponse)
	ask := func(text string) string {
		messages.PipeRaw("s", []byte(`{"session_id":"s","role":"user","content":"`+text+`"}`))
		return string(enriched.Next().Raw)
	}
	run := func(id, request, text string, result topics.AgentResult) topics.Output {
		events.Pipe("s", topics.AgentEvent{
			SessionID: "s", TurnID: id, Attempt: 1, Seq: 1, Request: topics.Raw(request),
			Event: topics.Raw(`{"type":"message","data":{"text":"` + text + `"}}`),
		})
		events.Pipe("s", topics.AgentEvent{SessionID: "s", TurnID: id, Attempt: 1, Seq: 2, Result: &result})
		return outputs.Next().Value
	}
	require.Equal(t, "one", run("t1", ask("first"), "one", topics.AgentResult{OK: true}).Content)
	failed := run("t2", ask("second"), "half", topics.AgentResult{})
	require.Equal(t, topics.CodeThinkFailed, failed.Error.Code)
	request := ask("third")
	require.Contains(t, request, `"first"`)
	require.Contains(t, request, `"one"`)
	require.NotContains(t, request, `"half"`)
	require.Equal(t, "three", run("t3", request, "three", topics.AgentResult{OK: true}).Content)
	processortest.Out(d, c.BatchMessages).Drain()
	processortest.Out(d, c.ThinkRequestResponse).Drain()
	processortest.Out(d, c.ThinkDLQ).Drain()
}

// A turn that is cancelled before one of its records contained the request cannot name its message. The next message,
// which was queued behind it, is answered nevertheless.
func TestCancelOfAFoldedTurnLeavesTheNextMessageAlone(t *testing.T) {
	c, err := topics.For("quay")
	require.NoError(t, err)
	folding, err := fold.Graph("quay", fold.Config{ThinkResponses: true})
	require.NoError(t, err)
	turns, err := turn.Graph("quay", turn.Config{})
	require.NoError(t, err)
	d := processortest.New(t, time.UnixMilli(1_790_000_000_000).UTC(), turns, folding)
	messages, events := processortest.In(d, c.MessageInput), processortest.In(d, c.AgentEvents)
	controls := processortest.In(d, c.SessionControl)
	enriched, outputs := processortest.Out(d, c.EnrichedMessageInput), processortest.Out(d, c.MessageOutput)
	for _, text := range []string{"first", "second"} {
		messages.PipeRaw("s", []byte(`{"session_id":"s","role":"user","content":"`+text+`"}`))
	}
	enriched.Next()
	events.Pipe("s", topics.AgentEvent{
		SessionID: "s", TurnID: "t1", Attempt: 1, Seq: 1, Event: topics.Raw(`{"type":"message","data":{"text":"half"}}`),
	})
	controls.Pipe("s", topics.Control{Action: topics.ActionCancel})
	require.Equal(t, topics.CodeCancelled, outputs.Next().Value.Error.Code)
	events.Pipe("s", topics.AgentEvent{
		SessionID: "s", TurnID: "t2", Attempt: 1, Seq: 1, Request: topics.Raw(enriched.Next().Raw),
		Event: topics.Raw(`{"type":"message","data":{"text":"two"}}`),
	})
	events.Pipe("s", topics.AgentEvent{
		SessionID: "s", TurnID: "t2", Attempt: 1, Seq: 2, Result: &topics.AgentResult{OK: true},
	})
	require.Equal(t, "two", outputs.Next().Value.Content)
	require.Empty(t, processortest.Out(d, c.ThinkDLQ).Drain())
	processortest.Out(d, c.BatchMessages).Drain()
	processortest.Out(d, c.ThinkRequestResponse).Drain()
}
