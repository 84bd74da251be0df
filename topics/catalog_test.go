package topics

import (
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
)

func TestEveryTopicNameStartsWithTheAgentName(t *testing.T) {
	c := harbor(t)
	suffixes := map[string]string{}
	for _, s := range c.Specs() {
		suffix, ok := strings.CutPrefix(s.Name, "harbor-")
		require.True(t, ok, s.Name)
		require.NotContains(t, s.Name, "--")
		require.NotContains(t, suffixes, suffix, "listed once")
		require.NotEmpty(t, s.Record)
		require.NotEmpty(t, s.Key)
		require.NotEmpty(t, s.Cleanup)
		suffixes[suffix] = s.Record
	}
	require.Equal(t, map[string]string{
		"message-input": "Message", "enriched-message-input": "EnrichedMessage", "think-request-response": "ThinkResponse",
		"think-dlq": "ThinkFailure", "tool-use": "ToolUseItem", "tool-use-dlq": "ToolUseItem",
		"tool-use-result": "ToolUseResult", "tool-use-all-complete": "ToolResults", "tool-use-latency": "ToolLatency",
		"message-output": "Output", "reply-to": "Route", "session-control": "Control", "session-context": "Raw",
		"session-cost": "SessionCost", "session-end": "SessionEnd", "memoir-context": "string",
		"memoir-context-session-end": "MemoirSnapshot", "streams-dlq": "raw", "streams-loop": "raw",
		"streams-table":      "session row",
		"compaction-request": "CompactionRequest", "compaction-result": "CompactionResult",
		"deliveries": "Delivery", "delivery-receipts": "Receipt", "delivery-dlq": "DeadDelivery",
		"delivery-control": "DeliveryControl", "delivery-streams-dlq": "raw", "delivery-streams-loop": "raw",
		"delivery-streams-table": "delivery row", "delivery-routes-dlq": "raw", "delivery-routes-loop": "raw",
		"delivery-routes-table": "route row",
		"agent-events":          "AgentEvent", "batch-messages": "BatchMessage", "fold-streams-dlq": "raw",
		"fold-streams-loop": "raw", "fold-streams-table": "fold row",
		"gate-requests": "GateRequest", "gate-decisions": "GateDecision", "gate-outcomes": "GateOutcome",
		"gate-grants": "GateGrant", "gate-streams-dlq": "raw", "gate-streams-loop": "raw",
		"gate-streams-table": "gate row", "gate-grant-streams-dlq": "raw", "gate-grant-streams-loop": "raw",
		"gate-grant-streams-table": "grant row",
		"peer-audit":               "PeerAudit", "peer-events": "PeerAudit", "peer-commands": "PeerCommand",
		"peer-replies": "PeerReply", "peer-attempts": "Delivery", "peer-receipts": "Receipt", "peer-callbacks": "Output",
		"peer-tasks-dlq": "raw", "peer-tasks-loop": "raw", "peer-tasks-table": "peer row",
		"peer-chain-dlq": "raw", "peer-chain-loop": "raw", "peer-chain-table": "chain row",
		"delegation-replies": "DelegationReply", "delegation-status": "Delegation", "channel-messages": "Output",
		"delegations-dlq": "raw", "delegations-loop": "raw", "delegations-table": "delegations row",
		"latencies-dlq": "raw", "latencies-loop": "raw", "latencies-table": "latency row",
		"memoir-dlq": "MemoirSnapshot", "memoir-lookups": "EnrichedMessage", "memoir-sessions": "MemoirSnapshot",
		"memories-dlq": "raw", "memories-loop": "raw", "memories-table": "memory row",
		"model-costs": "ModelCost", "scope-costs": "ModelCost", "spending": "Spending",
		"session-costs-dlq": "raw", "session-costs-loop": "raw", "session-costs-table": "cost row",
		"spending-totals-dlq": "raw", "spending-totals-loop": "raw", "spending-totals-table": "spending row",
		"crew-agent-inputs": "CrewInput", "crew-inputs": "CrewInput", "crew-repository-inputs": "CrewInput",
		"crew-actions": "CrewAction", "crew-events": "CrewEvent",
		"crew-agents-dlq": "raw", "crew-agents-loop": "raw", "crew-agents-table": "crew agent row",
		"crews-dlq": "raw", "crews-loop": "raw", "crews-table": "crew row",
		"crew-repositories-dlq": "raw", "crew-repositories-loop": "raw", "crew-repositories-table": "repository row",
	}, suffixes)
	require.EqualValues(t, "harbor-streams", c.Group())
	require.Equal(t, "harbor-streams-dlq", c.DeadLetters())
	require.Equal(t, "harbor-streams-loop", c.Loop())
	require.Equal(t, "harbor-streams-table", c.Table())
	require.EqualValues(t, "harbor-message-input", c.MessageInput.Stream())
	require.Equal(t, "harbor-message-input", c.MessageInput.Name())
}

func TestDeliveryTopicsAreCreatedOnlyWithTheOption(t *testing.T) {
	c, err := For("harbor", WithDeliveries())
	require.NoError(t, err)
	with, without := map[string]bool{}, map[string]bool{}
	for _, s := range c.Specs() {
		with[s.Name] = s.Created
	}
	for _, s := range harbor(t).Specs() {
		without[s.Name] = s.Created
	}
	for _, s := range c.deliverySpecs() {
		require.True(t, with[s.Name], s.Name)
		require.False(t, without[s.Name], s.Name)
	}
	require.EqualValues(t, "harbor-delivery-routes-table", c.DeliveryRoutes())
}

func TestFoldTopicsAreCreatedOnlyWithTheOption(t *testing.T) {
	c, err := For("harbor", WithEvents())
	require.NoError(t, err)
	with, without := map[string]bool{}, map[string]bool{}
	for _, s := range c.Specs() {
		with[s.Name] = s.Created
	}
	for _, s := range harbor(t).Specs() {
		without[s.Name] = s.Created
	}
	for _, s := range c.foldSpecs() {
		require.True(t, with[s.Name], s.Name)
		require.False(t, without[s.Name], s.Name)
	}
	require.EqualValues(t, "harbor-fold-streams", c.FoldGroup())
}

func TestGateTopicsAreCreatedOnlyWithTheOption(t *testing.T) {
	c, err := For("harbor", WithGates())
	require.NoError(t, err)
	with, without := map[string]bool{}, map[string]bool{}
	for _, s := range c.Specs() {
		with[s.Name] = s.Created
	}
	for _, s := range harbor(t).Specs() {
		without[s.Name] = s.Created
	}
	for _, s := range c.gateSpecs() {
		require.True(t, with[s.Name], s.Name)
		require.False(t, without[s.Name], s.Name)
	}
	require.EqualValues(t, "harbor-gate-streams", c.GateGroup())
	require.EqualValues(t, "harbor-gate-grant-streams-table", c.GateGrantTable())
}

func TestPeerTopicsAreCreatedOnlyWithTheOption(t *testing.T) {
	c, err := For("harbor", WithPeers())
	require.NoError(t, err)
	require.Len(t, c.peerSpecs(), 13)
	for _, s := range c.peerSpecs() {
		require.Contains(t, c.Specs(), s)
		require.True(t, s.Created, s.Name)
	}
	for _, s := range harbor(t).peerSpecs() {
		require.False(t, s.Created, s.Name)
	}
	require.Equal(t, "harbor-peer-audit", c.PeerAudit.Name())
	require.EqualValues(t, "harbor-peer-tasks", c.PeerTasksGroup())
	require.Equal(t, "harbor-peer-sink", c.PeerSinkGroup())
	require.EqualValues(t, "harbor-peer-chain", c.PeerChainGroup())
}

func TestChannelTopicsAreCreatedOnlyWithTheOption(t *testing.T) {
	c, err := For("harbor", WithChannels())
	require.NoError(t, err)
	require.Len(t, c.channelSpecs(), 6)
	for _, s := range c.channelSpecs() {
		require.Contains(t, c.Specs(), s)
		require.True(t, s.Created, s.Name)
	}
	for _, s := range harbor(t).channelSpecs() {
		require.False(t, s.Created, s.Name)
	}
	require.EqualValues(t, "harbor-delegations", c.DelegationsGroup())
	require.Contains(t, c.Groups(), c.DelegationsGroup())
}

func TestCrewTopicsAreCreatedOnlyWithTheOption(t *testing.T) {
	c, err := For("harbor", WithCrews())
	require.NoError(t, err)
	require.Len(t, c.crewSpecs(), 14)
	for _, s := range c.crewSpecs() {
		require.Contains(t, c.Specs(), s)
		require.True(t, s.Created, s.Name)
	}
	for _, s := range harbor(t).crewSpecs() {
		require.False(t, s.Created, s.Name)
	}
	for _, g := range []goka.Group{c.CrewAgentsGroup(), c.CrewsGroup(), c.CrewRepositoriesGroup()} {
		require.Contains(t, c.Groups(), g)
	}
}

func TestTopicsOfMemoryCostAndLatencyAreCreatedOnlyWithTheirOptions(t *testing.T) {
	with, err := For("harbor", WithMemoir(), WithCosts(), WithLatencies())
	require.NoError(t, err)
	without := harbor(t)
	require.Len(t, with.memoirSpecs(), 9)
	require.Len(t, with.costSpecs(), 10)
	for i, s := range append(with.memoirSpecs(), with.costSpecs()...) {
		require.Contains(t, with.Specs(), s)
		require.True(t, s.Created, s.Name)
		require.False(t, append(without.memoirSpecs(), without.costSpecs()...)[i].Created, s.Name)
	}
	require.True(t, without.ToolUseLatency.Spec().Created, "FlightDeck creates it")
	require.Equal(t, CleanupCompact, with.MemoirContext.Spec().Cleanup)
	require.Equal(t, 24*time.Hour, with.MemoirContext.Spec().CompactionLag)
	require.Equal(t, CleanupCompact, with.SessionCost.Spec().Cleanup)
	for _, g := range []goka.Group{with.MemoriesGroup(), with.SessionCostsGroup(), with.SpendingGroup(), with.LatenciesGroup()} {
		require.Contains(t, with.Groups(), g)
	}
	require.Equal(t, "harbor-memoir-updater", with.MemoirGroup())
}

func TestAgentNamesAreValidatedAndNotTrimmed(t *testing.T) {
	longest := 249 - len("-memoir-context-session-end")
	for _, agent := range []string{"a", "A.b_c-9", "test-agent", strings.Repeat("x", longest)} {
		c, err := For(agent)
		require.NoError(t, err)
		require.Equal(t, agent, c.Agent)
	}
	for _, agent := range []string{
		"", " ", "\t\n", " a", "a ", "a b", "ä", "a/b", "a\x00", strings.Repeat("x", longest+1),
	} {
		_, err := For(agent)
		require.ErrorIs(t, err, ErrAgent, "%q", agent)
	}
}

func TestRouteTTLIsTheRetentionOfReplyTo(t *testing.T) {
	require.Equal(t, 24*time.Hour, harbor(t).ReplyTo.Spec().Retention)
	c, err := For("harbor", WithRouteTTL(time.Minute))
	require.NoError(t, err)
	require.Equal(t, time.Minute, c.ReplyTo.Spec().Retention)
	for _, ttl := range []time.Duration{0, -time.Second, time.Microsecond} {
		_, err := For("harbor", WithRouteTTL(ttl))
		require.Error(t, err)
	}
}
