package topics

import (
	"slices"

	"github.com/lovoo/goka"
)

// Program is a program of an agent that reads or writes its topics and has no table.
type Program struct {
	Name string      `json:"name"`
	Kind ProgramKind `json:"kind"`
	// Group is the consumer group or share group of a worker or sender. Other programs read all partitions without a group.
	Group string `json:"group,omitempty"`
	// Reads and Writes are names of topics. Reads has the changelogs of the tables that the program follows, too.
	Reads  []string `json:"reads"`
	Writes []string `json:"writes"`
}

// ProgramKind is what a program does.
type ProgramKind string

// The kinds of programs.
const (
	ProgramWorker ProgramKind = "worker" // calls models, tools and compactors
	ProgramSender ProgramKind = "sender" // sends answers and tasks to other services
	ProgramDoor   ProgramKind = "door"   // receives requests of users and services
	ProgramHost   ProgramKind = "host"   // runs coding agents
)

// Programs returns the programs of this module that serve the agent: those whose topics Ensure creates. Their Reads and Writes have
// no other topics.
func (c Catalog) Programs() []Program {
	created, own := map[string]bool{}, map[string]bool{}
	for _, s := range c.Specs() {
		own[s.Name], created[s.Name] = true, s.Created
	}
	absent := func(name string) bool { return own[name] && !created[name] }
	var on []Program
	for _, p := range c.allPrograms() {
		if !created[append(p.Reads[:len(p.Reads):len(p.Reads)], p.Writes...)[0]] {
			continue
		}
		p.Reads, p.Writes = slices.DeleteFunc(p.Reads, absent), slices.DeleteFunc(p.Writes, absent)
		on = append(on, p)
	}
	return on
}

// allPrograms returns the programs of all capabilities. Without the first topic, a program has nothing to do.
func (c Catalog) allPrograms() []Program {
	table := func(g goka.Group) named { return named(goka.GroupTable(g)) }
	program := func(name string, kind ProgramKind, group string, reads, writes []namer) Program {
		return Program{Name: name, Kind: kind, Group: group, Reads: topicNames(reads), Writes: topicNames(writes)}
	}
	type list = []namer
	return []Program{
		// A worker reads what it has written: a call that has settled is not made again.
		program("model worker", ProgramWorker, c.ThinkGroup(),
			list{c.EnrichedMessageInput, c.MessageOutput, c.ThinkRequestResponse, c.ThinkDLQ}, list{c.ThinkRequestResponse, c.ThinkDLQ, c.AgentEvents}),
		program("tool worker", ProgramWorker, c.ToolGroup(),
			list{c.ToolUse, c.MessageOutput, c.ToolUseResult}, list{c.ToolUseResult, c.ToolUseDLQ}),
		program("compactor", ProgramWorker, c.CompactGroup(), list{c.CompactionRequest, c.MessageOutput, c.CompactionResult}, list{c.CompactionResult}),
		program("memoir updater", ProgramWorker, c.MemoirGroup(),
			list{c.MemoirContextSessionEnd, c.MessageOutput, c.MemoirContext, c.MemoirDLQ}, list{c.MemoirContext, c.MemoirDLQ}),
		program("delivery sink", ProgramSender, c.SinkGroup(), list{c.Deliveries}, list{c.DeliveryReceipts}),
		program("peer sink", ProgramSender, c.PeerSinkGroup(), list{c.PeerAttempts}, list{c.PeerReceipts}),
		program("turnhttp", ProgramDoor, "", nil, list{c.MessageInput, c.ReplyTo, c.ToolUseResult}),
		program("invoke", ProgramDoor, "",
			list{c.AgentEvents, c.MessageInput, c.MessageOutput, c.BatchMessages, c.GateRequests, c.GateOutcomes}, list{c.MessageInput, c.GateDecisions}),
		program("websocket", ProgramDoor, "", list{
			c.MessageInput, c.EnrichedMessageInput, c.ThinkRequestResponse, c.ToolUse, c.ToolUseDLQ, c.ToolUseResult, c.ToolUseAllComplete,
			c.ToolUseLatency, c.MessageOutput, c.SessionContext,
		}, nil),
		program("gatehttp", ProgramDoor, "", list{c.GateRequests, table(c.GateGroup()), named(c.GateGrantTable())}, list{c.GateDecisions, c.GateGrants}),
		program("delegationhttp", ProgramDoor, "", list{c.DelegationStatus}, nil),
		program("peerhttp", ProgramDoor, "", list{c.PeerReplies}, list{c.PeerCommands, c.PeerEvents}),
		program("channel bridge", ProgramDoor, "", nil,
			list{c.ChannelMessages, c.MessageInput, c.SessionControl, c.ThinkRequestResponse, c.GateDecisions}),
		program("crewhttp", ProgramDoor, "", list{
			c.CrewEvents, c.GateRequests, table(c.CrewAgentsGroup()), table(c.CrewsGroup()), table(c.CrewRepositoriesGroup()),
		}, list{c.CrewAgentInputs, c.CrewInputs, c.CrewRepositoryInputs, c.GateDecisions, c.GateGrants}),
		program("crew host", ProgramHost, "", list{c.CrewActions, table(c.CrewAgentsGroup()), table(c.CrewRepositoriesGroup())},
			list{c.CrewAgentInputs, c.CrewInputs, c.CrewRepositoryInputs, c.CrewActions}),
	}
}

// namer is a topic.
type namer interface{ Name() string }

type named string

func (n named) Name() string { return string(n) }

func topicNames(list []namer) []string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name()
	}
	return names
}
