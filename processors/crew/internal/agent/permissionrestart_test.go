package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// A process with the agents and their gates is killed while a request waits. A client that connects to its successor sees the request
// with its deadline, and the answer arrives once.
func TestP14_PendingPermissionsSurviveARestartWithTheirDeadline(t *testing.T) {
	both(t, func(t *testing.T, s *stage) {
		gates, kill := s.withGates()
		s.watch()
		s.crew(crewbody.Spawn{
			Member: crewbody.Member{AgentID: theAgent, CrewID: "c1", RoleID: "developer", RoleName: "Developer", Host: "north"},
			Prompt: "You are a developer.",
		})
		run, _ := action[crewbody.Start](s, 1)
		s.host(crewbody.Started{Run: run})
		s.host(crewbody.SessionReady{Run: run, SessionID: "s1"})
		action[crewbody.Send](s, 1)
		s.host(crewbody.Permission{
			Run: run, RequestID: "r1", SessionID: "s1",
			Options: topics.Raw(`[{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]`),
			ToolCall: topics.Raw(
				`{"toolCallId":"call-r1","title":"Run it","kind":"execute","rawInput":{"command":"npm test"}}`),
		})
		id := topics.GateID(theAgent, run, "r1")
		asked, expires := s.pending(gates, id)
		kill()

		gates, _ = s.withGates()
		again, expiresAgain := s.pending(gates, id)
		require.Equal(t, asked, again)
		require.Equal(t, expires, expiresAgain)
		at, err := time.Parse(time.RFC3339, expires)
		require.NoError(t, err)
		require.Equal(t, asked.ExpiresAt, view.Time(at.UnixMilli()), "the gate has the deadline that people see")

		decision := topics.GateDecision{GateID: id, SessionID: theAgent, DecisionID: "d1", Verdict: topics.VerdictDeny, By: "ines", Via: "door"}
		out, err := processors.OutboundOf(s.topics.GateDecisions, theAgent, decision, "d1")
		require.NoError(t, err)
		require.NoError(t, s.to.Publish(t.Context(), out))
		_, answer := action[crewbody.Answer](s, 1)
		require.Equal(t, crewbody.Answer{AgentID: theAgent, Run: run, RequestID: "r1", OptionID: "no", By: "ines"}, answer)
		require.Eventually(t, func() bool { return len(s.view().Permissions) == 0 }, waitLimit, 5*time.Millisecond)
		s.crew(crewbody.Terminate{}) // answers the requests that are open
		action[crewbody.Stop](s, 1)
		s.mu.Lock()
		defer s.mu.Unlock()
		answers := 0
		for _, a := range s.actions {
			if a.Kind == (crewbody.Answer{}).Kind() {
				answers++
			}
		}
		require.Equal(t, 1, answers)
	})
}

// withGates starts the agents and the groups of their gates.
func (s *stage) withGates() (gates *processors.Processor, kill func()) {
	s.t.Helper()
	killAgents := s.run(agent.Config{})
	gateGraph, err := gate.Graph(s.topics.Agent, gate.Config{})
	require.NoError(s.t, err)
	grantGraph, err := gate.GrantsGraph(s.topics.Agent, gate.Config{})
	require.NoError(s.t, err)
	gates, killGates := s.start(gateGraph)
	_, killGrants := s.start(grantGraph)
	return gates, func() {
		killAgents()
		killGates()
		killGrants()
	}
}

func (s *stage) view() view.Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, err := s.current.Get(theAgent)
	if err != nil {
		return view.Agent{}
	}
	state, err := agent.Table.Of(row)
	if err != nil {
		return view.Agent{}
	}
	return agent.View(theAgent, state)
}

// pending waits until a client sees the only open request, and a person its gate, and returns it with the deadline of the gate.
func (s *stage) pending(gates *processors.Processor, gateID string) (asked view.PermissionAsked, expires string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		open := s.view().Permissions
		list, err := gate.Inspect(gates, theAgent)
		if err != nil || len(open) != 1 || len(list) != 1 {
			return false
		}
		asked, expires = open[0], list[0].ExpiresAt
		return asked.ID == gateID && list[0].GateID == gateID
	}, waitLimit, 5*time.Millisecond)
	return asked, expires
}
