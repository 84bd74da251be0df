package crewhttp

import (
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/repository"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
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
		var row *agentRow
		if r.Value != nil {
			var s *agent.State
			if s, err = agent.Table.Unmarshal(r.Value); err == nil {
				row = x.agentRowOf(key, s)
			}
		}
		if err == nil {
			x.setAgent(key, row)
		}
	case tables[1]:
		var row *crewRow
		if r.Value != nil {
			var s *team.State
			if s, err = team.Table.Unmarshal(r.Value); err == nil {
				row = crewRowOf(key, s)
			}
		}
		if err == nil {
			x.setCrew(key, row)
		}
	case tables[2]:
		var row *repositoryRow
		if r.Value != nil {
			var s *repository.State
			if s, err = repository.Table.Unmarshal(r.Value); err == nil {
				row = repositoryRowOf(key, s)
			}
		}
		if err == nil {
			x.setRepository(key, row)
		}
	}
	if err != nil {
		x.config.Logger.Error("crew door cannot read a row, and shows the one before it", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.String("key", key), zap.Error(err))
	}
}

// agentRowOf returns what the index keeps of an agent's row; nil for a row without an agent.
func (x *Index) agentRowOf(key string, s *agent.State) *agentRow {
	m := s.GetMember()
	if m == nil {
		return nil
	}
	return &agentRow{
		view: x.linkedView(agent.View(key, s)), seq: s.GetMailbox().GetSeq(),
		removed: func(nowMS int64) bool { return s.RemovedMs != 0 && s.RemovedMs <= nowMS },
		member: crewbody.Member{
			AgentID: key, CrewID: m.CrewId, ProjectID: m.ProjectId, RoleID: m.RoleId, RoleName: m.RoleName, Model: m.Model,
			Provider: m.Provider, Host: m.Host, Cwd: m.Cwd, Repository: m.Repository,
		},
	}
}

func crewRowOf(key string, s *team.State) *crewRow {
	if s == nil {
		return nil
	}
	return &crewRow{crewState: teamState{key, s}, seq: s.GetMailbox().GetSeq()}
}

func repositoryRowOf(key string, s *repository.State) *repositoryRow {
	if s == nil {
		return nil
	}
	return &repositoryRow{
		locks: func(nowMS int64) []view.FileLock { return repository.Locks(key, s, nowMS) }, seq: s.GetMailbox().GetSeq(),
	}
}

// teamState is the row of a crew. It is not changed, so its methods are safe for concurrent use.
type teamState struct {
	key string
	*team.State
}

func (s teamState) Project() (id, name string) {
	c := team.SettingsOf(s.key, s.State)
	return c.ProjectID, c.ProjectName
}

func (s teamState) Paused() bool                   { return team.SettingsOf(s.key, s.State).Paused }
func (s teamState) Decisions() []view.Decision     { return team.Decisions(s.State) }
func (s teamState) Delegations() []view.Delegation { return team.Delegations(s.State) }
func (s teamState) Tasks() []view.Task             { return team.Tasks(s.State) }
func (s teamState) Activities() []view.Activity    { return team.Activities(s.State) }
func (s teamState) Groups() []view.Group           { return team.Groups(s.State) }

func (s teamState) Messages(group string) []view.GroupMessage { return team.Messages(s.State, group) }
