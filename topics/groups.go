package topics

import "github.com/lovoo/goka"

// Group is the consumer group of the agent's turn, "{agent}-streams". It is the group of FlightDeck's Java application:
// the turn continues from its committed offsets, and both cannot run at the same time.
func (c Catalog) Group() goka.Group { return goka.Group(c.Agent + "-streams") }

// DeadLetters is the dead-letter topic of Group.
func (c Catalog) DeadLetters() string { return string(c.Group()) + "-dlq" }

// Loop is the loop topic of Group: records that were written under another key than their session ID, or to the wrong
// partition, are sent through it to the right one.
func (c Catalog) Loop() string { return string(c.Group()) + "-loop" }

// Table is the changelog topic of the table of Group.
func (c Catalog) Table() string { return string(c.Group()) + "-table" }

// DeliveryGroup is the consumer group of the agent's deliveries, "{agent}-delivery-streams".
func (c Catalog) DeliveryGroup() goka.Group { return goka.Group(c.Agent + "-delivery-streams") }

// DeliveryRoutesGroup is the consumer group that keeps the state of the routes, "{agent}-delivery-routes".
func (c Catalog) DeliveryRoutesGroup() goka.Group { return goka.Group(c.Agent + "-delivery-routes") }

// DeliveryRoutes is the table of DeliveryRoutesGroup.
func (c Catalog) DeliveryRoutes() goka.Table { return goka.GroupTable(c.DeliveryRoutesGroup()) }

// FoldGroup is the consumer group that folds the agent's events, "{agent}-fold-streams".
func (c Catalog) FoldGroup() goka.Group { return goka.Group(c.Agent + "-fold-streams") }

// GateGroup is the consumer group of the agent's gates, "{agent}-gate-streams".
func (c Catalog) GateGroup() goka.Group { return goka.Group(c.Agent + "-gate-streams") }

// GateGrantGroup is the consumer group that keeps the agent's standing approvals, "{agent}-gate-grant-streams".
func (c Catalog) GateGrantGroup() goka.Group { return goka.Group(c.Agent + "-gate-grant-streams") }

// GateGrantTable is the table of GateGrantGroup.
func (c Catalog) GateGrantTable() goka.Table { return goka.GroupTable(c.GateGrantGroup()) }

// PeerTasksGroup is the consumer group of the tasks that the agent delegates to other instances, and of those that they
// delegate to it, "{agent}-peer-tasks".
func (c Catalog) PeerTasksGroup() goka.Group { return goka.Group(c.Agent + "-peer-tasks") }

// PeerSinkGroup is the group of the workers that send tasks to other instances, "{agent}-peer-sink".
func (c Catalog) PeerSinkGroup() string { return c.Agent + "-peer-sink" }

// PeerChainGroup is the consumer group that makes the hash chain of the audit, "{agent}-peer-chain".
func (c Catalog) PeerChainGroup() goka.Group { return goka.Group(c.Agent + "-peer-chain") }

// DelegationsGroup is the consumer group of the tasks that the agent delegates to other agents and does not wait for,
// "{agent}-delegations".
func (c Catalog) DelegationsGroup() goka.Group { return goka.Group(c.Agent + "-delegations") }

// MemoriesGroup is the consumer group that keeps the memories of users, "{agent}-memories".
func (c Catalog) MemoriesGroup() goka.Group { return goka.Group(c.Agent + "-memories") }

// MemoirGroup is the group of the workers that update memories, "{agent}-memoir-updater".
func (c Catalog) MemoirGroup() string { return c.Agent + "-memoir-updater" }

// SessionCostsGroup is the consumer group that adds up the costs of sessions, "{agent}-session-costs".
func (c Catalog) SessionCostsGroup() goka.Group { return goka.Group(c.Agent + "-session-costs") }

// SpendingGroup is the consumer group that adds up the costs of users and tenants, "{agent}-spending-totals".
func (c Catalog) SpendingGroup() goka.Group { return goka.Group(c.Agent + "-spending-totals") }

// LatenciesGroup is the consumer group that aggregates the latencies of tools, "{agent}-latencies".
func (c Catalog) LatenciesGroup() goka.Group { return goka.Group(c.Agent + "-latencies") }

// CrewAgentsGroup is the consumer group that keeps the coding agents of crews, "{agent}-crew-agents".
func (c Catalog) CrewAgentsGroup() goka.Group { return goka.Group(c.Agent + "-crew-agents") }

// CrewsGroup is the consumer group that keeps crews, "{agent}-crews".
func (c Catalog) CrewsGroup() goka.Group { return goka.Group(c.Agent + "-crews") }

// CrewRepositoriesGroup is the consumer group that keeps the locks of repositories, "{agent}-crew-repositories".
func (c Catalog) CrewRepositoriesGroup() goka.Group {
	return goka.Group(c.Agent + "-crew-repositories")
}

// ThinkGroup is the group of the agent's model workers, "{agent}-think-consumer".
func (c Catalog) ThinkGroup() string { return c.Agent + "-think-consumer" }

// ToolGroup is the group of the agent's tool workers, "{agent}-tool-execution".
func (c Catalog) ToolGroup() string { return c.Agent + "-tool-execution" }

// CompactGroup is the group of the agent's compactors, "{agent}-compactor".
func (c Catalog) CompactGroup() string { return c.Agent + "-compactor" }

// SinkGroup is the group of the agent's delivery sinks, "{agent}-delivery-sink".
func (c Catalog) SinkGroup() string { return c.Agent + "-delivery-sink" }

// RequeueID is the transactional ID with which dead letters are written back to their topics, "{agent}-requeue".
func (c Catalog) RequeueID() string { return c.Agent + "-requeue" }

// HistoryImportGroup is the group that records the progress of the import of FlightDeck's histories,
// "{agent}-history-import". See package migrate of processors/turn.
func (c Catalog) HistoryImportGroup() string { return c.Agent + "-history-import" }

// FlightDeckStore is the changelog topic of the histories of FlightDeck's processing application.
func (c Catalog) FlightDeckStore() string {
	return string(c.Group()) + "-think-response-store-changelog"
}

// Archive is the topic with the journal of processors/archive, "{agent}-archive". It exists while the topics of the agent are
// restored or moved to other partitions.
func (c Catalog) Archive() string { return c.Agent + ArchiveSuffix }

// ArchiveSuffix ends the names of the topics that processors/archive makes for a time.
const ArchiveSuffix = "-archive"

// Groups returns the consumer groups that process the catalog's topics and have a table; those of workers are not among them.
func (c Catalog) Groups() []goka.Group {
	return []goka.Group{
		c.Group(), c.DeliveryGroup(), c.DeliveryRoutesGroup(), c.FoldGroup(), c.GateGroup(), c.GateGrantGroup(),
		c.PeerTasksGroup(), c.PeerChainGroup(), c.DelegationsGroup(),
		c.MemoriesGroup(), c.SessionCostsGroup(), c.SpendingGroup(), c.LatenciesGroup(),
		c.CrewAgentsGroup(), c.CrewsGroup(), c.CrewRepositoriesGroup(),
	}
}
