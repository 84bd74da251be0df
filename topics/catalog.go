package topics

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/codec"
)

// ErrAgent is wrapped by the error of For when an agent name cannot be the prefix of a topic name.
var ErrAgent = errors.New("topics: bad agent name")

// DefaultRouteTTL is the lifetime of a reply route unless WithRouteTTL sets it.
const DefaultRouteTTL = 24 * time.Hour

// maxName is Kafka's limit for the length of a topic name.
const maxName = 249

// Catalog holds the topics of one agent's pipeline. It is a value; For builds it.
type Catalog struct {
	// Agent is the prefix of every topic name.
	Agent string

	MessageInput         Topic[Message]
	EnrichedMessageInput Topic[EnrichedMessage]
	ThinkRequestResponse Topic[ThinkResponse]
	ThinkDLQ             Topic[ThinkFailure]
	ToolUse              Topic[ToolUseItem]
	ToolUseDLQ           Topic[ToolUseItem]
	ToolUseResult        Topic[ToolUseResult]
	ToolUseAllComplete   Topic[ToolResults]
	ToolUseLatency       Topic[ToolLatency]
	MessageOutput        Topic[Output]
	ReplyTo              Topic[Route]
	SessionControl       Topic[Control]

	// The topics of processors/delivery. Ensure creates them only with WithDeliveries.
	Deliveries       Topic[Delivery]
	DeliveryReceipts Topic[Receipt]
	DeliveryDLQ      Topic[DeadDelivery]
	DeliveryControl  Topic[DeliveryControl]

	// The topics of a compactor, see turn.Config.Compaction. Ensure creates them only with WithCompaction.
	CompactionRequest Topic[CompactionRequest]
	CompactionResult  Topic[CompactionResult]

	// The topics of processors/fold. Ensure creates them only with WithEvents.
	AgentEvents   Topic[AgentEvent]
	BatchMessages Topic[BatchMessage]

	// The topics of processors/gate. Ensure creates them only with WithGates.
	GateRequests  Topic[GateRequest]
	GateDecisions Topic[GateDecision]
	GateOutcomes  Topic[GateOutcome]
	GateGrants    Topic[GateGrant]

	// The topics of processors/peer. Ensure creates them only with WithPeers.
	PeerCommands  Topic[PeerCommand]
	PeerReplies   Topic[PeerReply]
	PeerAttempts  Topic[Delivery]
	PeerReceipts  Topic[Receipt]
	PeerCallbacks Topic[Output]
	PeerEvents    Topic[PeerAudit]
	PeerAudit     Topic[PeerAudit]

	// The topics of processors/delegation. Ensure creates them only with WithChannels.
	DelegationReplies Topic[DelegationReply]
	DelegationStatus  Topic[Delegation]
	ChannelMessages   Topic[Output]

	// The topics of processors/memoir. Ensure creates them only with WithMemoir.
	SessionEnd              Topic[SessionEnd]
	MemoirSessions          Topic[MemoirSnapshot]  // ended sessions, for the group of the memories
	MemoirLookups           Topic[EnrichedMessage] // steps for the model that the group of the memories completes
	MemoirContextSessionEnd Topic[MemoirSnapshot]
	MemoirContext           Topic[string]
	MemoirDLQ               Topic[MemoirSnapshot] // snapshots that a worker gave up

	// The topics of processors/memoir/cost. Ensure creates them only with WithCosts.
	ModelCosts  Topic[ModelCost]
	SessionCost Topic[SessionCost]
	ScopeCosts  Topic[ModelCost]
	Spending    Topic[Spending]

	// The topics of processors/crew. Ensure creates them only with WithCrews.
	CrewAgentInputs      Topic[CrewInput]
	CrewInputs           Topic[CrewInput]
	CrewRepositoryInputs Topic[CrewInput]
	CrewActions          Topic[CrewAction]
	CrewEvents           Topic[CrewEvent]

	latencies bool // Ensure creates the topics of LatenciesGroup

	// SessionContext is a topic that FlightDeck names and nothing writes. Ensure does not create it.
	SessionContext Topic[Raw]
}

// CatalogOption configures For.
type CatalogOption func(*catalogOptions)

type catalogOptions struct {
	routeTTL   time.Duration
	deliveries bool
	events     bool
	compaction bool
	gates      bool
	peers      bool
	channels   bool
	memoir     bool
	costs      bool
	latencies  bool
	crews      bool
}

// WithRouteTTL sets the lifetime of a reply route, which is also the retention that the reply-to topic is created with.
// The default is DefaultRouteTTL. For returns an error if ttl is less than 1 ms. FlightDeck's name for this setting is
// REPLY_TO_STATE_TTL_MS.
func WithRouteTTL(ttl time.Duration) CatalogOption {
	return func(o *catalogOptions) { o.routeTTL = ttl }
}

// WithDeliveries makes Ensure create the topics of processors/delivery too. Otherwise Ensure does not create them.
func WithDeliveries() CatalogOption {
	return func(o *catalogOptions) { o.deliveries = true }
}

// WithEvents makes Ensure create the topics of processors/fold too. Otherwise Ensure does not create them.
func WithEvents() CatalogOption {
	return func(o *catalogOptions) { o.events = true }
}

// WithCompaction makes Ensure create the topics of a compactor too. Otherwise Ensure does not create them.
func WithCompaction() CatalogOption {
	return func(o *catalogOptions) { o.compaction = true }
}

// WithGates makes Ensure create the topics of processors/gate too. Otherwise Ensure does not create them.
func WithGates() CatalogOption {
	return func(o *catalogOptions) { o.gates = true }
}

// WithPeers makes Ensure create the topics of processors/peer too. Otherwise Ensure does not create them.
func WithPeers() CatalogOption {
	return func(o *catalogOptions) { o.peers = true }
}

// WithChannels makes Ensure create the topics of processors/delegation too. Otherwise Ensure does not create them.
func WithChannels() CatalogOption {
	return func(o *catalogOptions) { o.channels = true }
}

// WithMemoir makes Ensure create the topics of processors/memoir too. Otherwise Ensure does not create them.
func WithMemoir() CatalogOption {
	return func(o *catalogOptions) { o.memoir = true }
}

// WithCosts makes Ensure create the topics of processors/memoir/cost too. Otherwise Ensure does not create them.
func WithCosts() CatalogOption {
	return func(o *catalogOptions) { o.costs = true }
}

// WithLatencies makes Ensure create the topics of processors/memoir/latency too. Otherwise Ensure creates only
// tool-use-latency.
func WithLatencies() CatalogOption {
	return func(o *catalogOptions) { o.latencies = true }
}

// WithCrews makes Ensure create the topics of processors/crew too. Otherwise Ensure does not create them. Crews ask people
// through gates, so give it with WithGates.
func WithCrews() CatalogOption {
	return func(o *catalogOptions) { o.crews = true }
}

// For returns the catalog of an agent. The name is not trimmed. The error wraps ErrAgent if the name is blank, contains a
// character that Kafka forbids in topic names, makes a topic name longer than 249 characters, or has a suffix that gives it
// the topic or group names of another agent: "support-delivery" would have the group "support-delivery-streams", which
// belongs to the deliveries of "support".
func For(agent string, opts ...CatalogOption) (Catalog, error) {
	o := catalogOptions{routeTTL: DefaultRouteTTL}
	for _, opt := range opts {
		opt(&o)
	}
	if o.routeTTL < time.Millisecond {
		return Catalog{}, fmt.Errorf("topics: route TTL is %v, want at least a millisecond", o.routeTTL)
	}
	if err := validAgent(agent); err != nil {
		return Catalog{}, err
	}
	c := catalog(agent, o)
	if ending := ambiguousEnding(agent, o); ending != "" {
		return Catalog{}, fmt.Errorf("%w: %q ends in %q, so it would share topics or groups with agent %q",
			ErrAgent, agent, ending, strings.TrimSuffix(agent, ending))
	}
	for _, s := range c.Specs() {
		if len(s.Name) > maxName {
			return Catalog{}, fmt.Errorf("%w: %d characters, want at most %d to leave room for %q",
				ErrAgent, len(agent), maxName-(len(s.Name)-len(agent)), strings.TrimPrefix(s.Name, agent))
		}
	}
	return c, nil
}

func validAgent(agent string) error {
	if strings.TrimSpace(agent) == "" {
		return fmt.Errorf("%w: blank", ErrAgent)
	}
	for i := range len(agent) {
		switch b := agent[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '.', b == '_', b == '-':
		default:
			return fmt.Errorf("%w: its character %d is no letter, digit, dot, underscore or hyphen", ErrAgent, i+1)
		}
	}
	return nil
}

func catalog(agent string, o catalogOptions) Catalog {
	// Most topics are keyed by session, deleted by age, and created by Ensure.
	session := func(suffix, record string) Spec {
		return Spec{
			Name: agent + "-" + suffix, Record: record, Key: KeySession, Cleanup: CleanupDelete,
			CoPartitioned: true, Created: true,
		}
	}
	reader := func(suffix, record string, key Key) Spec {
		return Spec{Name: agent + "-" + suffix, Record: record, Key: key, Cleanup: CleanupDelete}
	}
	// FlightDeck does not create think-dlq. Here it is an input of the turn, which must exist. The SDKs of FlightDeck let the
	// broker create it, with another number of partitions than the other topics have.
	thinkDLQ := session("think-dlq", "ThinkFailure")
	thinkDLQ.CoPartitioned = false
	replyTo := session("reply-to", "Route")
	replyTo.Cleanup, replyTo.Retention = CleanupCompactDelete, o.routeTTL
	latency := reader("tool-use-latency", "ToolLatency", KeyTool)
	latency.Created, latency.CoPartitioned = true, o.latencies // the group of the latencies has a table
	delivery := func(suffix, record string) Spec {
		s := session(suffix, record)
		s.Created = o.deliveries
		return s
	}
	compaction := func(suffix, record string) Spec {
		s := session(suffix, record)
		s.Created = o.compaction
		return s
	}
	gate := func(suffix, record string) Spec {
		s := session(suffix, record)
		s.Created = o.gates
		return s
	}
	// All records of an agent have one key, and the group that reads them has a table of its own.
	grants := gate("gate-grants", "GateGrant")
	grants.Key, grants.Cleanup = KeyAgent, CleanupDelete
	peer := func(suffix, record string) Spec {
		s := session(suffix, record)
		s.Created = o.peers
		return s
	}
	// All events of an instance have one key, and the group that reads them has a table of its own.
	peerEvents := peer("peer-events", "PeerAudit")
	peerEvents.Key = KeyInstance
	// Readers join the records of a task, of two instances.
	peerAudit := reader("peer-audit", "PeerAudit", KeyTask)
	peerAudit.Created = o.peers
	channel := func(suffix, record string) Spec {
		s := session(suffix, record)
		s.Created = o.channels
		return s
	}
	memoir := func(suffix, record string, key Key) Spec {
		s := session(suffix, record)
		s.Key, s.Created = key, o.memoir
		return s
	}
	memory := memoir("memoir-context", "string", KeyUser)
	// A worker to which a snapshot is delivered again finds the memory that it wrote, also if the user has a newer one, and does
	// not pay for it again.
	memory.Cleanup, memory.CompactionLag = CleanupCompact, 24*time.Hour
	cost := func(suffix, record string, key Key, cleanup Cleanup) Spec {
		s := session(suffix, record)
		s.Key, s.Cleanup, s.Created = key, cleanup, o.costs
		return s
	}
	crew := func(suffix, record string, key Key) Spec {
		s := session(suffix, record)
		s.Key, s.Created = key, o.crews
		return s
	}
	event := func(suffix, record string) Spec {
		s := session(suffix, record)
		s.Created = o.events
		return s
	}

	return Catalog{
		Agent:                agent,
		latencies:            o.latencies,
		MessageInput:         New(session("message-input", "Message"), messageWire.codec()),
		EnrichedMessageInput: New(session("enriched-message-input", "EnrichedMessage"), enrichedWire.codec()),
		ThinkRequestResponse: New(session("think-request-response", "ThinkResponse"), thinkWire.codec()),
		ThinkDLQ:             New(thinkDLQ, failureWire.codec()),
		ToolUse:              New(session("tool-use", "ToolUseItem"), toolUseWire.codec()),
		ToolUseDLQ:           New(session("tool-use-dlq", "ToolUseItem"), toolUseWire.codec()),
		ToolUseResult:        New(session("tool-use-result", "ToolUseResult"), toolResultWire.codec()),
		ToolUseAllComplete:   New(session("tool-use-all-complete", "ToolResults"), toolResultsWire.codec()),
		ToolUseLatency:       New(latency, latencyWire.codec()),
		MessageOutput:        New(session("message-output", "Output"), outputWire.codec()),
		ReplyTo:              New(replyTo, routeWire.codec()),
		SessionControl:       New(session("session-control", "Control"), controlWire.codec()),

		Deliveries:       New(delivery("deliveries", "Delivery"), deliveryWire.codec()),
		DeliveryReceipts: New(delivery("delivery-receipts", "Receipt"), receiptWire.codec()),
		DeliveryDLQ:      New(delivery("delivery-dlq", "DeadDelivery"), deadDeliveryWire.codec()),
		DeliveryControl:  New(delivery("delivery-control", "DeliveryControl"), deliveryControlWire.codec()),

		CompactionRequest: New(compaction("compaction-request", "CompactionRequest"), compactionRequestWire.codec()),
		CompactionResult:  New(compaction("compaction-result", "CompactionResult"), compactionResultWire.codec()),

		AgentEvents:   New(event("agent-events", "AgentEvent"), agentEventWire.codec()),
		BatchMessages: New(event("batch-messages", "BatchMessage"), batchMessageWire.codec()),

		GateRequests:  New(gate("gate-requests", "GateRequest"), gateRequestWire.codec()),
		GateDecisions: New(gate("gate-decisions", "GateDecision"), gateDecisionWire.codec()),
		GateOutcomes:  New(gate("gate-outcomes", "GateOutcome"), gateOutcomeWire.codec()),
		GateGrants:    New(grants, gateGrantWire.codec()),

		PeerCommands:  New(peer("peer-commands", "PeerCommand"), peerCommandWire.codec()),
		PeerReplies:   New(peer("peer-replies", "PeerReply"), peerReplyWire.codec()),
		PeerAttempts:  New(peer("peer-attempts", "Delivery"), deliveryWire.codec()),
		PeerReceipts:  New(peer("peer-receipts", "Receipt"), receiptWire.codec()),
		PeerCallbacks: New(peer("peer-callbacks", "Output"), outputWire.codec()),
		PeerEvents:    New(peerEvents, peerEventWire.codec()),
		PeerAudit:     New(peerAudit, peerAuditWire.codec()),

		DelegationReplies: New(channel("delegation-replies", "DelegationReply"), delegationReplyWire.codec()),
		DelegationStatus:  New(channel("delegation-status", "Delegation"), delegationWire.codec()),
		ChannelMessages:   New(channel("channel-messages", "Output"), outputWire.codec()),

		SessionEnd:     New(memoir("session-end", "SessionEnd", KeySession), sessionEndWire.codec()),
		MemoirSessions: New(memoir("memoir-sessions", "MemoirSnapshot", KeyUser), snapshotWire.codec()),
		MemoirLookups:  New(memoir("memoir-lookups", "EnrichedMessage", KeyUser), enrichedWire.codec()),
		MemoirContextSessionEnd: New(memoir("memoir-context-session-end", "MemoirSnapshot", KeyUser),
			snapshotWire.codec()),
		MemoirContext: New(memory, codec.String()),
		MemoirDLQ:     New(memoir("memoir-dlq", "MemoirSnapshot", KeyUser), snapshotWire.codec()),

		ModelCosts:  New(cost("model-costs", "ModelCost", KeySession, CleanupDelete), modelCostWire.codec()),
		SessionCost: New(cost("session-cost", "SessionCost", KeySession, CleanupCompact), sessionCostWire.codec()),
		ScopeCosts:  New(cost("scope-costs", "ModelCost", KeyScope, CleanupDelete), modelCostWire.codec()),
		Spending:    New(cost("spending", "Spending", KeyScope, CleanupCompact), spendingWire.codec()),

		CrewAgentInputs:      New(crew("crew-agent-inputs", "CrewInput", KeyAgent), crewInputWire.codec()),
		CrewInputs:           New(crew("crew-inputs", "CrewInput", KeyCrew), crewInputWire.codec()),
		CrewRepositoryInputs: New(crew("crew-repository-inputs", "CrewInput", KeyRepository), crewInputWire.codec()),
		CrewActions:          New(crew("crew-actions", "CrewAction", KeySubject), crewActionWire.codec()),
		CrewEvents:           New(crew("crew-events", "CrewEvent", KeySubject), crewEventWire.codec()),

		SessionContext: New(reader("session-context", "Raw", KeySession), rawWire.codec()),
	}
}
