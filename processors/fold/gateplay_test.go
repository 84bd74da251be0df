package fold

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// gating makes paused runs wait for as long as they may.
func gating(c *Config) { c.Gates, c.GateTimeout = true, mostGateTimeout }

// gate collects a record of gate-requests as its codec decodes it.
func (p *play) gate(id string, r topics.GateRequest) {
	p.tb.Helper()
	raw, err := quay.GateRequests.Codec().Marshal(r)
	require.NoError(p.tb, err)
	require.LessOrEqual(p.tb, len(raw), p.config.RecordLimit)
	d := quay.GateRequests.Codec().Unmarshal(raw)
	require.NoError(p.tb, d.Err, "%s", raw)
	if r.Withdrawn != "" {
		require.Equal(p.tb, r.GateID+"/0/gate-withdrawal/0", id)
		require.Contains(p.tb, p.gates, r.GateID, "only requested gates are withdrawn")
		p.withdrawn[r.GateID] = r.Withdrawn
		return
	}
	require.Equal(p.tb, r.GateID+"/0/gate-request/0", id)
	if before, repeated := p.gates[r.GateID]; repeated {
		before.ExpiresMS, d.Value.ExpiresMS = 0, 0
		require.Equal(p.tb, before, d.Value, "a repeat is the same")
	}
	p.gates[r.GateID] = d.Value
}

// gateID returns the gate of the n-th interaction request of an attempt.
func gateID(turn string, attempt int64, n int) string {
	return topics.GateID("s", turn, folder.GateCall(turn, attempt, n))
}

// outcomeRecord returns a record of gate-outcomes as the codec decodes it.
func outcomeRecord(t tester, turn string, attempt int64, n int, status topics.GateStatus) input {
	t.Helper()
	raw, err := quay.GateOutcomes.Codec().Marshal(topics.GateOutcome{
		GateID: gateID(turn, attempt, n), SessionID: "s", TurnID: turn, CallID: folder.GateCall(turn, attempt, n),
		Kind: topics.GateTool, Tool: "pay", Status: status, Cause: topics.CauseHuman,
	})
	require.NoError(t, err)
	d := quay.GateOutcomes.Codec().Unmarshal(raw)
	require.NoError(t, d.Err)
	return outcomeReceived{record(""), d.Value}
}

// asks returns the event of an interaction request about a call.
func asks(id, call string) string {
	return fmt.Sprintf(`{"type":"interaction_request","data":{"id":%q,"kind":"user_approval","payload":{"toolCallId":%q,`+
		`"toolCall":{"name":"pay","title":"Pay 1 EUR","input":{"eur":1.50}},"availableReplies":["once","reject"]}}}`, id, call)
}

func answersTo(id string) string {
	return fmt.Sprintf(`{"type":"interaction_response","data":{"id":%q,"kind":"user_approval","payload":{"approved":true}}}`, id)
}

// send applies events of a turn with the next numbers.
func (p *play) send(turn string, from int64, events ...string) effects {
	p.tb.Helper()
	var all effects
	for i, e := range events {
		all = append(all, p.handle(eventRecord(p.tb, turn, from+int64(i), e))...)
	}
	return all
}

// open returns the IDs of the gates that were requested and not withdrawn.
func (p *play) opened() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.gates)), func(id string) bool { return p.withdrawn[id] != "" })
}

func ended(r topics.AgentResult) *topics.AgentResult { return &r }
