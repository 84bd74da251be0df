package topics

import (
	"bytes"
	"embed"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
)

// The golden records are samples from FlightDeck's wire format, and our own records for the topics that it does not have.
//
//go:embed testdata/golden
var golden embed.FS

func records(t testing.TB, name string) [][]byte {
	t.Helper()
	file, err := golden.ReadFile("testdata/golden/" + name + ".jsonl")
	require.NoError(t, err)
	return bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n"))
}

func roundTrip[T any](t *testing.T, topic Topic[T], name string) {
	t.Run(name, func(t *testing.T) {
		for _, record := range records(t, name) {
			d := topic.Codec().Unmarshal(record)
			require.NoError(t, d.Err)
			again, err := topic.Codec().Marshal(d.Value)
			require.NoError(t, err)
			require.Equal(t, string(record), string(again))
		}
	})
}

func TestGoldenRecordsRoundTripByteForByte(t *testing.T) {
	c, err := For("harbor")
	require.NoError(t, err)
	roundTrip(t, c.MessageInput, "message-input")
	roundTrip(t, c.EnrichedMessageInput, "enriched-message-input")
	roundTrip(t, c.ThinkRequestResponse, "think-request-response")
	roundTrip(t, c.ToolUse, "tool-use")
	roundTrip(t, c.ToolUseDLQ, "tool-use-dlq")
	roundTrip(t, c.ToolUseResult, "tool-use-result")
	roundTrip(t, c.ToolUseAllComplete, "tool-use-all-complete")
	roundTrip(t, c.MessageOutput, "message-output")
	roundTrip(t, c.ReplyTo, "reply-to")
	roundTrip(t, c.SessionControl, "session-control")
	roundTrip(t, c.SessionEnd, "session-end")
	roundTrip(t, c.MemoirContextSessionEnd, "memoir-context-session-end")
	roundTrip(t, c.ToolUseLatency, "tool-use-latency")
	roundTrip(t, c.SessionCost, "session-cost")
	roundTrip(t, c.ModelCosts, "model-costs")
	roundTrip(t, c.Spending, "spending")
	roundTrip(t, c.Deliveries, "deliveries")
	roundTrip(t, c.DeliveryReceipts, "delivery-receipts")
	roundTrip(t, c.DeliveryDLQ, "delivery-dlq")
	roundTrip(t, c.DeliveryControl, "delivery-control")
	roundTrip(t, c.CompactionRequest, "compaction-request")
	roundTrip(t, c.CompactionResult, "compaction-result")
	roundTrip(t, c.AgentEvents, "agent-events")
	roundTrip(t, c.BatchMessages, "batch-messages")
	roundTrip(t, c.GateRequests, "gate-requests")
	roundTrip(t, c.GateDecisions, "gate-decisions")
	roundTrip(t, c.GateOutcomes, "gate-outcomes")
	roundTrip(t, c.GateGrants, "gate-grants")
	roundTrip(t, c.PeerAudit, "peer-audit")
	roundTrip(t, c.PeerEvents, "peer-events")
	roundTrip(t, c.PeerCommands, "peer-commands")
	roundTrip(t, c.PeerReplies, "peer-replies")
	roundTrip(t, c.DelegationReplies, "delegation-replies")
	roundTrip(t, c.DelegationStatus, "delegation-status")
	roundTrip(t, c.ChannelMessages, "channel-messages")
	roundTrip(t, c.CrewInputs, "crew-inputs")
	roundTrip(t, c.CrewActions, "crew-actions")
	roundTrip(t, c.CrewEvents, "crew-events")
}

func poison[T any](t *testing.T, c codec.Codec[T], record string, want error) {
	t.Helper()
	d := c.Unmarshal([]byte(record))
	require.ErrorIs(t, d.Err, want, "%s", record)
}
