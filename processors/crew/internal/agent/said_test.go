package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

func TestCommandsGoToTheRowThatCarriesThemOut(t *testing.T) {
	w := newWorld(t).start().crew(normal("go"))
	w.say("I lock ⟦⟦ LOCK_FILE {\"filePath\":", "\"a.go\"} ⟧⟧ and tell ⟦⟦ BROADCAST {\"content\":\"hi\"} ⟧⟧ ⟦⟦ NONSENSE {} ⟧⟧")
	var to, ids []string
	for _, e := range w.last {
		if m, ok := e.(mailbox.Mail); ok && m.Input.Kind == "command" {
			to, ids = append(to, m.To), append(ids, m.Input.InputID)
		}
	}
	require.Equal(t, []string{"repository/shop", "crew/c1"}, to)
	require.Equal(t, "agent/"+agentID+"/s1/7", ids[0], "agent, session and place in the text")
	c := bodies[crewbody.Command](w.last)[0]
	require.Equal(t, "LOCK_FILE", c.Name)
	require.Equal(t, agentID, c.Member.AgentID)
	require.EqualValues(t, 7, c.Offset)
	require.Len(t, fields(w.last, "agent:text"), 1)
	w.endTurn()
	require.Contains(t, prompts(w.last)[0], "NONSENSE", "the agent is told")
}

// A process is killed after it wrote the commands of a step and before it stored the row. The next one repeats the step, with the same
// IDs and numbers, so the receivers recognize the repeat. Then it completes the command that the step began.
func TestX13_RepeatedStepRepeatsItsCommandsWithTheirIDs(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say(`⟦⟦ BROADCAST {"content":"one"} ⟧⟧ ⟦⟦ BROADCAST {"cont`)
	first := commandIDs(w.last)
	require.Len(t, first, 1)
	stored := w.row
	w.say(`ent":"two"} ⟧⟧ ⟦⟦ LOCK_FILE {"filePath":"a.go"} ⟧⟧ ⟦⟦ BROAD`)
	step := w.logged[len(w.logged)-1]
	lost := w.last
	require.Len(t, commandIDs(lost), 2)

	w.row = stored
	require.Equal(t, lost, w.apply(step))
	require.Empty(t, w.apply(step), "what is stored is not done again")
	w.say(`CAST {"content":"three"} ⟧⟧`)
	require.Len(t, commandIDs(w.last), 1)
	seen := map[string]bool{}
	for _, id := range slices.Concat(first, commandIDs(lost), commandIDs(w.last)) {
		require.False(t, seen[id], "each command has an ID of its own")
		seen[id] = true
	}
	require.JSONEq(t, `{"content":"two"}`, string(bodies[crewbody.Command](lost)[0].Payload))
	require.JSONEq(t, `{"content":"three"}`, string(bodies[crewbody.Command](w.last)[0].Payload))
}

func TestCommandThatAnExitCutsIsForgotten(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say("⟦⟦ BROADCAST {\"content\":").exit(1)
	w.pass(2*time.Second).crew(crewbody.Restart{}).ready("s1", true)
	w.crew(normal("go")).say("\"hi\"} ⟧⟧ ⟦⟦ BROADCAST {\"content\":\"new\"} ⟧⟧")
	list := bodies[crewbody.Command](w.last)
	require.Len(t, list, 1)
	require.JSONEq(t, `{"content":"new"}`, string(list[0].Payload))
	require.Greater(t, list[0].Offset, int64(20), "offsets of a session go on")
}

func TestOutputBelongsToTheTask(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say(strings.Repeat("é", 20_000))
	require.Len(t, []rune(w.state().Output), 16_000)
	require.Len(t, []rune(w.view().OutputPreview), 4_000)
	w.crew(crewbody.Task{Task: "next"}).say("done")
	require.Equal(t, "done", w.state().Output)
	require.Equal(t, "next", w.view().Task)
	require.Len(t, []rune(w.view().OutputPreview), 4_000)
}

func TestOpenToolCallsAreClosedAtTheEndOfTheTurn(t *testing.T) {
	call := topics.Raw(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"Build"}`)
	w := newWorld(t).start().crew(normal("go")).updates(false, call).endTurn()
	require.Equal(t, "failed", w.view().ToolCalls[0].Status)
	require.Len(t, fields(w.last, "agent:tool_call"), 1)
	w.crew(normal("go")).updates(false, call).exit(1)
	require.Equal(t, "failed", w.view().ToolCalls[0].Status)
}

func TestWorkRenewsLocksOnceAMinute(t *testing.T) {
	w := newWorld(t).start().beat(10 * time.Minute)
	require.Empty(t, bodies[crewbody.AgentActive](w.last), "an idle agent does not work")
	w.crew(normal("go"))
	require.Len(t, bodies[crewbody.AgentActive](w.last), 1)
	w.beat(10 * time.Minute)
	require.Len(t, bodies[crewbody.AgentActive](w.last), 10)
}

func TestUsageAndCompactionAreReported(t *testing.T) {
	usage := func(used string) topics.Raw {
		return topics.Raw(`{"sessionUpdate":"usage_update","used":` + used + `,"size":200000}`)
	}
	w := newWorld(t).start().crew(normal("go")).updates(false, usage("100000"), usage("20000"))
	require.Len(t, fields(w.last, "agent:usage"), 2)
	require.Len(t, fields(w.last, "agent:context_compacted"), 1)
	require.Equal(t, []crewbody.Compacted{{AgentID: agentID, Previous: 100_000, Current: 20_000}}, bodies[crewbody.Compacted](w.last))
	w.host(crewbody.TurnEnded{
		Run: w.run(), PromptID: w.state().Turn.PromptId, StopReason: "end_turn", Usage: topics.Raw(`{"inputTokens":5,"outputTokens":7}`),
	})
	require.EqualValues(t, 5, w.view().InputTokens)
	require.EqualValues(t, 20_000, w.view().ContextWindowUsed)
}

func permissionOf(run, id string) crewbody.Permission {
	return crewbody.Permission{
		Run: run, RequestID: id, SessionID: "s1", ToolCall: topics.Raw(`{"toolCallId":"t","title":"Run","kind":"execute"}`),
		Options: topics.Raw(`[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]`),
	}
}

func TestPermissionIsAskedAndAnswered(t *testing.T) {
	w := newWorld(t).start().crew(normal("go"))
	w.host(permissionOf(w.run(), "1"))
	require.Equal(t, []string{"agent:tool_call", "agent:permission_request"}, events(w.last))
	require.Len(t, w.view().Permissions, 1)
	w.beat(20 * time.Minute)
	require.Empty(t, fields(w.last, "agent:hung"), "the agent waits for a person")
	w.door(crewbody.GateEnded{GateID: w.view().Permissions[0].ID, Status: topics.GateApproved, Cause: topics.CauseHuman, By: "ines"})
	require.Equal(t, "yes", bodies[crewbody.Answer](w.last)[0].OptionID)
	require.Empty(t, w.view().Permissions)

	// A cancelled turn has no open questions, and gets no new ones.
	w.host(permissionOf(w.run(), "2")).crew(crewbody.Interrupt{})
	require.Equal(t, []string{"agent:permission_resolved"}, events(w.last))
	require.Empty(t, bodies[crewbody.Answer](w.last)[0].OptionID)
	w.host(permissionOf(w.run(), "3"))
	require.Empty(t, bodies[crewbody.Answer](w.last)[0].OptionID)
	require.Empty(t, events(w.last))
	w.endTurn()

	w.door(crewbody.Autopilot{On: true}).crew(normal("go")).host(permissionOf(w.run(), "4"))
	require.Equal(t, "yes", bodies[crewbody.Answer](w.last)[0].OptionID)
	w.door(crewbody.Autopilot{}).host(permissionOf(w.run(), "5")).crew(crewbody.Terminate{})
	require.Len(t, bodies[crewbody.Answer](w.last), 1, "cancelled before the stop")
	require.Empty(t, w.view().Permissions)
}

// Agents announce their commands as soon as there is a session, before the host reports it.
func TestStateOfANewSessionIsKeptFromItsBeginning(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).updates(false, topics.Raw(`{"sessionUpdate":"plan","entries":[{"content":"old"}]}`))
	w.crew(crewbody.Restart{Manual: true})
	state := w.state()
	state.CanLoad = false // the next process begins a new session
	var err error
	w.row, err = Table.Marshal(state)
	require.NoError(t, err)
	w.exit(0)
	require.Empty(t, w.view().Plan)
	w.host(crewbody.Started{Run: w.run()})
	w.updates(false, topics.Raw(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"x","description":"y"}]}`))
	w.host(crewbody.SessionReady{Run: w.run(), SessionID: "s2"})
	require.Contains(t, string(w.state().Transcript.Commands), `"x"`)
}
