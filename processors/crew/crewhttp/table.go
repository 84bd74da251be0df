package crewhttp

import (
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/repository"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
)

// tableTopics are the topics of the three tables: of agents, crews and repositories.
func (x *Index) tableTopics() []string {
	return []string{
		string(goka.GroupTable(x.catalog.CrewAgentsGroup())), string(goka.GroupTable(x.catalog.CrewsGroup())),
		string(goka.GroupTable(x.catalog.CrewRepositoriesGroup())),
	}
}

// onRow is called for each record of a table. A row that cannot be decoded is not shown until it is written again.
func (x *Index) onRow(r processors.Inbound) {
	key, tables := string(r.Key), x.tableTopics()
	var err error
	switch r.Topic {
	case tables[0]:
		err = readRow(agent.Table, r.Value, func(s *agent.State) { x.setAgent(key, x.agentRowOf(key, s)) })
	case tables[1]:
		err = readRow(team.Table, r.Value, func(s *team.State) { x.setCrew(key, s) })
	case tables[2]:
		err = readRow(repository.Table, r.Value, func(s *repository.State) { x.setRepository(key, s) })
	}
	if err != nil {
		x.config.Logger.Error("crew door cannot read a row, and shows the one before it", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.String("key", key), zap.Error(err))
	}
}

// readRow passes a row to set, nil for none.
func readRow[R rows.Message](t rows.Table[R], raw []byte, set func(R)) (err error) {
	var row R
	if raw != nil {
		if row, err = t.Unmarshal(raw); err != nil {
			return err
		}
	}
	set(row)
	return nil
}

// agentRowOf returns what the index keeps of an agent's row; nil for a row without an agent.
func (x *Index) agentRowOf(key string, s *agent.State) *agentRow {
	if s.GetMember() == nil {
		return nil
	}
	m := agent.MemberOf(s)
	m.AgentID, m.Root, m.Below = key, "", ""
	return &agentRow{view: x.linkedView(agent.View(key, s)), seq: s.GetMailbox().GetSeq(), removedMS: s.RemovedMs, member: m}
}
