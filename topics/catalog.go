package topics

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
)

// ErrAgent is an agent name that cannot begin a topic's name.
var ErrAgent = errors.New("topics: bad agent name")

// DefaultRouteTTL is how long a reply route lives where WithRouteTTL does not say.
const DefaultRouteTTL = 24 * time.Hour

// maxName is Kafka's limit of a topic name.
const maxName = 249

// Catalog holds the topics of one agent's pipeline. It is a value, built by For.
type Catalog struct {
	// Agent is the name that every topic begins with.
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

	// Of deliveries; Ensure creates them where WithDeliveries says so.
	Deliveries       Topic[Delivery]
	DeliveryReceipts Topic[Receipt]
	DeliveryDLQ      Topic[DeadDelivery]
	DeliveryControl  Topic[DeliveryControl]

	// Of folding; Ensure creates them where WithEvents says so.
	AgentEvents   Topic[AgentEvent]
	BatchMessages Topic[BatchMessage]

	// Names for readers: topics that FlightDeck has, or had, and the turn does not use.
	SessionContext          Topic[Raw]
	SessionCost             Topic[SessionCost]
	SessionEnd              Topic[SessionEnd]
	MemoirContext           Topic[string]
	MemoirContextSessionEnd Topic[MemoirSnapshot]
}

// CatalogOption changes a catalog.
type CatalogOption func(*catalogOptions)

type catalogOptions struct {
	routeTTL   time.Duration
	deliveries bool
	events     bool
}

// WithRouteTTL sets how long a reply route lives, which is the retention of reply-to (default DefaultRouteTTL;
// FlightDeck's REPLY_TO_STATE_TTL_MS). It must be positive.
func WithRouteTTL(ttl time.Duration) CatalogOption {
	return func(o *catalogOptions) { o.routeTTL = ttl }
}

// WithDeliveries has Ensure create the topics of processors/delivery too. Without it they are names for readers.
func WithDeliveries() CatalogOption {
	return func(o *catalogOptions) { o.deliveries = true }
}

// WithEvents has Ensure create the topics of processors/fold too. Without it they are names for readers.
func WithEvents() CatalogOption {
	return func(o *catalogOptions) { o.events = true }
}

// For is the catalog of an agent. The name is taken as it is, not trimmed; ErrAgent says that it is blank, has a
// character that Kafka forbids in topic names, or makes a name that is too long.
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
	for _, s := range c.Specs() {
		if len(s.Name) > maxName {
			return Catalog{}, fmt.Errorf("%w: %d characters, at most %d leave room for %q",
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
			return fmt.Errorf("%w: %q has a character other than letters, digits, dot, underscore and hyphen",
				ErrAgent, agent)
		}
	}
	return nil
}

func catalog(agent string, o catalogOptions) Catalog {
	// Most topics are keyed by session, deleted by age, and made by Ensure.
	session := func(suffix, record string) Spec {
		return Spec{
			Name: agent + "-" + suffix, Record: record, Key: KeySession, Cleanup: CleanupDelete,
			CoPartitioned: true, Created: true,
		}
	}
	reader := func(suffix, record string, key Key) Spec {
		return Spec{Name: agent + "-" + suffix, Record: record, Key: key, Cleanup: CleanupDelete}
	}
	// FlightDeck does not create think-dlq; here it is an input of the turn, and Goka wants its inputs to exist.
	thinkDLQ := session("think-dlq", "ThinkFailure")
	replyTo := session("reply-to", "Route")
	replyTo.Cleanup, replyTo.Retention = CleanupCompactDelete, o.routeTTL
	latency := reader("tool-use-latency", "ToolLatency", KeyTool)
	latency.Created = true
	delivery := func(suffix, record string) Spec {
		s := session(suffix, record)
		s.Created = o.deliveries
		return s
	}
	event := func(suffix, record string) Spec {
		s := session(suffix, record)
		s.Created = o.events
		return s
	}

	return Catalog{
		Agent:                agent,
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

		AgentEvents:   New(event("agent-events", "AgentEvent"), agentEventWire.codec()),
		BatchMessages: New(event("batch-messages", "BatchMessage"), batchMessageWire.codec()),

		SessionContext: New(reader("session-context", "Raw", KeySession), rawWire.codec()),
		SessionCost:    New(reader("session-cost", "SessionCost", KeySession), sessionCostWire.codec()),
		SessionEnd:     New(reader("session-end", "SessionEnd", KeySession), sessionEndWire.codec()),
		MemoirContext:  New(reader("memoir-context", "string", KeyUser), codec.String()),
		MemoirContextSessionEnd: New(reader("memoir-context-session-end", "MemoirSnapshot", KeyUser),
			snapshotWire.codec()),
	}
}

// Group is the consumer group of the agent's turn: the Java application's, so that its offsets go on and both cannot
// run at once.
func (c Catalog) Group() goka.Group { return goka.Group(c.Agent + "-streams") }

// DeadLetters is the topic of the records that the group could not use.
func (c Catalog) DeadLetters() string { return string(c.Group()) + "-dlq" }

// Loop is the topic by which a record that came under a wrong key, or to a wrong partition, goes to the right one.
func (c Catalog) Loop() string { return string(c.Group()) + "-loop" }

// Table is the changelog of the group table.
func (c Catalog) Table() string { return string(c.Group()) + "-table" }

// DeliveryGroup is the consumer group of the agent's deliveries.
func (c Catalog) DeliveryGroup() goka.Group { return goka.Group(c.Agent + "-delivery-streams") }

// DeliveryRoutesGroup is the consumer group that keeps the state of the routes, and DeliveryRoutes its table.
func (c Catalog) DeliveryRoutesGroup() goka.Group { return goka.Group(c.Agent + "-delivery-routes") }

// DeliveryRoutes is the table of DeliveryRoutesGroup.
func (c Catalog) DeliveryRoutes() goka.Table { return goka.GroupTable(c.DeliveryRoutesGroup()) }

// FoldGroup is the consumer group that folds the agent's events.
func (c Catalog) FoldGroup() goka.Group { return goka.Group(c.Agent + "-fold-streams") }

// Groups are the groups that work on the catalog's topics.
func (c Catalog) Groups() []goka.Group {
	return []goka.Group{c.Group(), c.DeliveryGroup(), c.DeliveryRoutesGroup(), c.FoldGroup()}
}

// Specs lists the topics in the order in which a turn passes them, the group's own behind them, then those of
// deliveries and of folding, and the names for readers.
func (c Catalog) Specs() []Spec {
	specs := []Spec{
		c.MessageInput.spec, c.EnrichedMessageInput.spec, c.ThinkRequestResponse.spec, c.ThinkDLQ.spec,
		c.ToolUse.spec, c.ToolUseDLQ.spec, c.ToolUseResult.spec, c.ToolUseAllComplete.spec, c.ToolUseLatency.spec,
		c.MessageOutput.spec, c.ReplyTo.spec, c.SessionControl.spec,
		{Name: c.DeadLetters(), Record: "raw", Key: KeySource, Cleanup: CleanupDelete, Created: true},
		{Name: c.Loop(), Record: "raw", Key: KeySession, Cleanup: CleanupDelete, CoPartitioned: true, Created: true},
		{
			Name: c.Table(), Record: "session row", Key: KeySession, Cleanup: CleanupCompact, CoPartitioned: true,
			Created: true,
		},
	}
	specs = append(specs, c.deliverySpecs()...)
	specs = append(specs, c.foldSpecs()...)
	return append(specs,
		c.SessionContext.spec, c.SessionCost.spec, c.SessionEnd.spec, c.MemoirContext.spec,
		c.MemoirContextSessionEnd.spec,
	)
}

// deliverySpecs lists the topics of deliveries, and those that both groups have for themselves.
func (c Catalog) deliverySpecs() []Spec {
	created := c.Deliveries.spec.Created
	specs := []Spec{c.Deliveries.spec, c.DeliveryReceipts.spec, c.DeliveryDLQ.spec, c.DeliveryControl.spec}
	specs = append(specs, groupSpecs(c.DeliveryGroup(), "delivery row", KeySession, created)...)
	return append(specs, groupSpecs(c.DeliveryRoutesGroup(), "route row", KeyRoute, created)...)
}

// foldSpecs lists the topics of folding, and those that its group has for itself.
func (c Catalog) foldSpecs() []Spec {
	specs := []Spec{c.AgentEvents.spec, c.BatchMessages.spec}
	return append(specs, groupSpecs(c.FoldGroup(), "fold row", KeySession, c.AgentEvents.spec.Created)...)
}

// groupSpecs lists the topics that a group has for itself.
func groupSpecs(group goka.Group, row string, key Key, created bool) []Spec {
	own := func(name, record string, cleanup Cleanup) Spec {
		return Spec{Name: name, Record: record, Key: key, Cleanup: cleanup, CoPartitioned: true, Created: created}
	}
	letters := own(string(group)+"-dlq", "raw", CleanupDelete)
	letters.Key, letters.CoPartitioned = KeySource, false
	return []Spec{
		letters, own(string(group)+"-loop", "raw", CleanupDelete),
		own(string(goka.GroupTable(group)), row, CleanupCompact),
	}
}
