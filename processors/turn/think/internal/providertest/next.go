package providertest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// paper is a publisher that keeps the records.
type paper []processors.Outbound

func (p *paper) Publish(_ context.Context, records ...processors.Outbound) error {
	*p = append(*p, records...)
	return nil
}

// NextStep returns the step after a worker has answered a step with calls: the conversation that the response has, and results.
// The model's state is in the response once, beside the content that people and other models read.
func NextStep(t *testing.T, m think.Model, s think.Step) think.Step {
	t.Helper()
	catalog, err := topics.For(s.Agent)
	require.NoError(t, err)
	var out paper
	worker, err := think.New(s.Agent, &out, m, think.Config{})
	require.NoError(t, err)
	var history topics.Raw
	for _, message := range s.Messages[:len(s.Messages)-1] {
		history = topics.Splice(history, topics.EncodeMessage(message))
	}
	record, err := processors.OutboundOf(catalog.EnrichedMessageInput, s.SessionID, topics.EnrichedMessage{
		SessionID: &s.SessionID, History: history, LatestInput: topics.EncodeMessage(s.Input()),
	}, s.Key)
	require.NoError(t, err)
	require.NoError(t, worker.Handle(t.Context(), processors.Inbound{
		Topic: record.Topic, Key: []byte(s.SessionID), Value: record.Value, Timestamp: time.Now(),
	}))
	require.Len(t, out, 1)
	require.Equal(t, catalog.ThinkRequestResponse.Name(), out[0].Topic)
	r := catalog.ThinkRequestResponse.Codec().Unmarshal(out[0].Value).Value
	require.NotEmpty(t, r.ToolUses)
	results := "["
	for i, call := range r.ToolUses {
		if i > 0 {
			results += ","
		}
		results += `{"tool_use_id":` + strconv.Quote(*call.ToolUseID) + `,"name":` + strconv.Quote(*call.Name) + `,"result":{"n":` +
			strconv.Itoa(i) + `},"status":"success"}`
	}
	next := s
	next.Messages = nil
	for message, err := range topics.Messages(topics.Splice(r.PreviousMessages, r.LastInputMessage, r.LastInputResponse)) {
		require.NoError(t, err)
		next.Messages = append(next.Messages, message)
	}
	next.Messages = append(next.Messages, Message("tool", results+"]"))
	next.Key += "/next"
	return next
}
