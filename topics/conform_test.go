package topics

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec/codectest"
)

// conform runs the suite of all codecs with the golden records as samples.
func conform[T any](t *testing.T, topic Topic[T], name string) {
	t.Run(name, func(t *testing.T) {
		var samples []T
		for _, record := range records(t, name) {
			d := topic.Codec().Unmarshal(record)
			require.NoError(t, d.Err)
			samples = append(samples, d.Value)
		}
		codectest.Run[T](t, topic.Codec(), samples...)
	})
}

func TestCodecsPassTheCodecSuite(t *testing.T) {
	c := harbor(t)
	conform(t, c.MessageInput, "message-input")
	conform(t, c.EnrichedMessageInput, "enriched-message-input")
	conform(t, c.ThinkRequestResponse, "think-request-response")
	conform(t, c.ThinkDLQ, "think-dlq")
	conform(t, c.ToolUse, "tool-use")
	conform(t, c.ToolUseResult, "tool-use-result")
	conform(t, c.ToolUseAllComplete, "tool-use-all-complete")
	conform(t, c.MessageOutput, "message-output")
	conform(t, c.ReplyTo, "reply-to")
	conform(t, c.SessionControl, "session-control")
	conform(t, c.SessionEnd, "session-end")
	conform(t, c.MemoirContextSessionEnd, "memoir-context-session-end")
	conform(t, c.ToolUseLatency, "tool-use-latency")
	conform(t, c.SessionCost, "session-cost")
	conform(t, c.ModelCosts, "model-costs")
	conform(t, c.Spending, "spending")
	conform(t, c.Deliveries, "deliveries")
	conform(t, c.DeliveryReceipts, "delivery-receipts")
	conform(t, c.DeliveryDLQ, "delivery-dlq")
	conform(t, c.DeliveryControl, "delivery-control")
	conform(t, c.CompactionRequest, "compaction-request")
	conform(t, c.CompactionResult, "compaction-result")
	conform(t, c.AgentEvents, "agent-events")
	conform(t, c.BatchMessages, "batch-messages")
	conform(t, c.GateRequests, "gate-requests")
	conform(t, c.GateDecisions, "gate-decisions")
	conform(t, c.GateOutcomes, "gate-outcomes")
	conform(t, c.GateGrants, "gate-grants")
	conform(t, c.PeerAudit, "peer-audit")
	conform(t, c.PeerEvents, "peer-events")
	conform(t, c.PeerCommands, "peer-commands")
	conform(t, c.PeerReplies, "peer-replies")
	conform(t, c.DelegationReplies, "delegation-replies")
	conform(t, c.DelegationStatus, "delegation-status")
	conform(t, c.ChannelMessages, "channel-messages")
	conform(t, c.CrewAgentInputs, "crew-inputs")
	conform(t, c.CrewActions, "crew-actions")
	conform(t, c.CrewEvents, "crew-events")
	conform(t, c.PeerAttempts, "deliveries")
	conform(t, c.PeerReceipts, "delivery-receipts")
}
