package topics

import "github.com/lovoo/goka"

// Specs returns all topics of the catalog: those of a turn in the order in which it uses them, then the internal topics of its
// group, those of a compactor, those of deliveries, those of folding, those of gates, those of peers, those of channels, those
// of memories, those of costs, those of latencies, those of crews, and those that Ensure does not create.
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
	specs = append(specs, c.CompactionRequest.spec, c.CompactionResult.spec)
	specs = append(specs, c.deliverySpecs()...)
	specs = append(specs, c.foldSpecs()...)
	specs = append(specs, c.gateSpecs()...)
	specs = append(specs, c.peerSpecs()...)
	specs = append(specs, c.channelSpecs()...)
	specs = append(specs, c.memoirSpecs()...)
	specs = append(specs, c.costSpecs()...)
	specs = append(specs, groupSpecs(c.LatenciesGroup(), "latency row", KeyTool, c.latencies)...)
	specs = append(specs, c.crewSpecs()...)
	return append(specs, c.SessionContext.spec)
}

// memoirSpecs returns the topics of memories, and those that their group keeps for itself.
func (c Catalog) memoirSpecs() []Spec {
	specs := []Spec{
		c.SessionEnd.spec, c.MemoirSessions.spec, c.MemoirLookups.spec, c.MemoirContextSessionEnd.spec, c.MemoirContext.spec,
		c.MemoirDLQ.spec,
	}
	return append(specs, groupSpecs(c.MemoriesGroup(), "memory row", KeyUser, c.MemoirSessions.spec.Created)...)
}

// costSpecs returns the topics of costs, and those that the two groups of costs keep for themselves.
func (c Catalog) costSpecs() []Spec {
	created := c.ModelCosts.spec.Created
	specs := []Spec{c.ModelCosts.spec, c.SessionCost.spec, c.ScopeCosts.spec, c.Spending.spec}
	specs = append(specs, groupSpecs(c.SessionCostsGroup(), "cost row", KeySession, created)...)
	return append(specs, groupSpecs(c.SpendingGroup(), "spending row", KeyScope, created)...)
}

// deliverySpecs returns the topics of deliveries, and those that the two delivery groups keep for themselves.
func (c Catalog) deliverySpecs() []Spec {
	created := c.Deliveries.spec.Created
	specs := []Spec{c.Deliveries.spec, c.DeliveryReceipts.spec, c.DeliveryDLQ.spec, c.DeliveryControl.spec}
	specs = append(specs, groupSpecs(c.DeliveryGroup(), "delivery row", KeySession, created)...)
	return append(specs, groupSpecs(c.DeliveryRoutesGroup(), "route row", KeyRoute, created)...)
}

// foldSpecs returns the topics of folding, and those that its group keeps for itself.
func (c Catalog) foldSpecs() []Spec {
	specs := []Spec{c.AgentEvents.spec, c.BatchMessages.spec}
	return append(specs, groupSpecs(c.FoldGroup(), "fold row", KeySession, c.AgentEvents.spec.Created)...)
}

// gateSpecs returns the topics of gates, and those that the two gate groups keep for themselves.
func (c Catalog) gateSpecs() []Spec {
	created := c.GateRequests.spec.Created
	specs := []Spec{c.GateRequests.spec, c.GateDecisions.spec, c.GateOutcomes.spec, c.GateGrants.spec}
	specs = append(specs, groupSpecs(c.GateGroup(), "gate row", KeySession, created)...)
	return append(specs, groupSpecs(c.GateGrantGroup(), "grant row", KeyAgent, created)...)
}

// peerSpecs returns the topics of peers, and those that the two peer groups keep for themselves.
func (c Catalog) peerSpecs() []Spec {
	created := c.PeerAudit.spec.Created
	specs := []Spec{
		c.PeerCommands.spec, c.PeerReplies.spec, c.PeerAttempts.spec, c.PeerReceipts.spec, c.PeerCallbacks.spec,
		c.PeerEvents.spec, c.PeerAudit.spec,
	}
	specs = append(specs, groupSpecs(c.PeerTasksGroup(), "peer row", KeySession, created)...)
	return append(specs, groupSpecs(c.PeerChainGroup(), "chain row", KeyInstance, created)...)
}

// channelSpecs returns the topics of channels, and those that the group of delegations keeps for itself.
func (c Catalog) channelSpecs() []Spec {
	specs := []Spec{c.DelegationReplies.spec, c.DelegationStatus.spec, c.ChannelMessages.spec}
	return append(specs, groupSpecs(c.DelegationsGroup(), "delegations row", KeySession, c.DelegationStatus.spec.Created)...)
}

// crewSpecs returns the topics of crews, and those that their three groups keep for themselves.
func (c Catalog) crewSpecs() []Spec {
	created := c.CrewInputs.spec.Created
	specs := []Spec{
		c.CrewAgentInputs.spec, c.CrewInputs.spec, c.CrewRepositoryInputs.spec, c.CrewActions.spec, c.CrewEvents.spec,
	}
	specs = append(specs, groupSpecs(c.CrewAgentsGroup(), "crew agent row", KeyAgent, created)...)
	specs = append(specs, groupSpecs(c.CrewsGroup(), "crew row", KeyCrew, created)...)
	return append(specs, groupSpecs(c.CrewRepositoriesGroup(), "repository row", KeyRepository, created)...)
}

// groupSpecs returns the topics that a group keeps for itself: dead letters, loop, and the changelog of its table.
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
