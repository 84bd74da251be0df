package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestAgentComesToItsFirstPrompt(t *testing.T) {
	w := newWorld(t).spawn()
	require.Equal(t, []string{"agent:spawned"}, events(w.last))
	require.Equal(t, view.Creating, w.view().Status)
	start := bodies[crewbody.Start](w.last)
	require.Equal(t, []crewbody.Start{{AgentID: agentID, Provider: "claude", Model: "m1", Cwd: "/src"}}, start)
	require.True(t, Live(w.state()))
	require.Equal(t, hostID, w.state().GetMember().GetHost())

	w.host(crewbody.Started{Run: w.run()})
	require.Empty(t, prompts(w.last))
	w.host(crewbody.SessionReady{Run: w.run(), SessionID: "s1"})
	require.Equal(t, []string{"agent:session_ready", "agent:response_start", "agent:status"}, events(w.last))
	require.Equal(t, []string{"You are a developer."}, prompts(w.last))
	require.Equal(t, "running", w.view().Phase)
	require.Equal(t, "s1", *w.view().SessionID)
	require.Equal(t, "s1", bodies[crewbody.AgentChanged](w.last)[0].SessionID)

	w.say("hel", "lo")
	require.Equal(t, []map[string]any{{"agentId": agentID, "text": "hello"}}, fields(w.last, "agent:text"))
	w.updates(false, topics.Raw(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`))
	require.Equal(t, "thinking", w.view().Phase)
	require.Empty(t, fields(w.last, "agent:status"), "thinking is running")
	w.rest()
	require.Equal(t, []string{"agent:response_end", "agent:status"}, events(w.last))
	require.Equal(t, []crewbody.AgentIdle{{AgentID: agentID, StopReason: "end_turn", SessionID: "s1", Output: "hello", Heard: 1}},
		bodies[crewbody.AgentIdle](w.last))
	require.Equal(t, view.Idle, w.view().Status)
	require.Equal(t, "hello", w.view().OutputPreview)
}

func TestA10_StopReasonsAreKeptDistinct(t *testing.T) {
	for _, reason := range []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "out_of_luck"} {
		w := newWorld(t).start().crew(crewbody.Prompt{Text: "go"})
		w.host(crewbody.TurnEnded{Run: w.run(), PromptID: w.state().Turn.PromptId, StopReason: reason}).pass(idleAfter)
		require.Equal(t, reason, bodies[crewbody.AgentIdle](w.last)[0].StopReason)
		require.Equal(t, reason, w.state().StopReason)
		require.Equal(t, reason, w.state().Outcome)
	}
	w := newWorld(t).start().crew(crewbody.Prompt{Text: "go"})
	w.host(crewbody.TurnEnded{Run: w.run(), PromptID: w.state().Turn.PromptId, Error: "internal error"}).pass(idleAfter)
	require.Equal(t, "error", bodies[crewbody.AgentIdle](w.last)[0].StopReason)
	require.Equal(t, view.Idle, w.view().Status)

	// Agents end cancelled turns with any reason. That the turn was cancelled is ours to say.
	w.crew(crewbody.Prompt{Text: "go on"}).door(crewbody.Interrupt{})
	require.Len(t, bodies[crewbody.Cancel](w.last), 1)
	w.rest()
	require.Equal(t, "end_turn", w.state().StopReason)
	require.Equal(t, "cancelled", w.state().Outcome)
	require.Equal(t, "cancelled", bodies[crewbody.AgentIdle](w.last)[0].StopReason)
	require.Equal(t, "cancelled", fields(w.last, "agent:response_end")[0]["outcome"])
}

func TestA11_ReplayedSessionHasNoEffects(t *testing.T) {
	replayed := []topics.Raw{
		topics.Raw(`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"do it"}}`),
		topics.Raw(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"⟦⟦ BROADCAST {\"content\":\"hi\"} ⟧⟧"}}`),
		topics.Raw(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`),
		topics.Raw(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read"}`),
	}
	for name, flagged := range map[string]bool{"flagged by the host": true, "before the session is ready": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.spawned.SessionID = "s0"
			w.spawn()
			require.Equal(t, "s0", bodies[crewbody.Start](w.last)[0].SessionID)
			w.host(crewbody.Started{Run: w.run()})
			require.Equal(t, "resuming", w.view().Phase)
			w.updates(flagged, replayed...)
			require.Empty(t, w.last)
			w.host(crewbody.SessionReady{Run: w.run(), SessionID: "s0", Resumed: true})
			require.Empty(t, prompts(w.last), "a continued session gets no first prompt")
			require.Equal(t, view.Idle, w.view().Status)
			require.Empty(t, w.view().OutputPreview)

			w.updates(true, replayed...)
			require.Empty(t, w.last)
			w.crew(crewbody.Prompt{Text: "go"}).updates(false, replayed...)
			require.Len(t, bodies[crewbody.Command](w.last), 1, "the same text is a command when it is new")
		})
	}
}

func TestA12_ResumeFailureStartsNoNewSession(t *testing.T) {
	w := newWorld(t)
	w.spawned.SessionID = "s0"
	w.spawn().host(crewbody.Started{Run: w.run()})
	w.host(crewbody.StartFailed{Run: w.run(), Stage: crewbody.StageResume, Error: "no such session", Process: true})
	require.Equal(t, []map[string]any{{"agentId": agentID, "requestedSessionId": "s0", "error": "no such session"}},
		fields(w.last, "agent:session_resume_failed"))
	w.exit(0)
	require.Equal(t, []string{"agent:exit", "agent:crashed", "agent:status"}, events(w.last))
	require.Equal(t, view.Failed, w.view().Status)
	require.Equal(t, "no such session", w.view().ExitError)
	require.Equal(t, crewbody.ExitStart, bodies[crewbody.AgentExited](w.last)[0].Cause)
	require.False(t, Live(w.state()))
	w.pass(time.Hour)
	require.Empty(t, w.last, "no restart")
	require.Len(t, bodies[crewbody.Start](w.all), 1)
}

func TestA14_SignalIsCodeOneAndOneExitIsReported(t *testing.T) {
	w := newWorld(t).start()
	run := w.run()
	w.host(crewbody.Exited{Run: run, Signal: "SIGKILL"})
	require.Equal(t, []map[string]any{{"agentId": agentID, "code": 1.0}}, fields(w.last, "agent:exit"))
	w.host(crewbody.Exited{Run: run, Code: 1})
	require.Empty(t, w.last)

	// An error and then an exit are one end.
	w = newWorld(t).spawn()
	run = w.run()
	w.host(crewbody.StartFailed{Run: run, Stage: crewbody.StageInitialize, Error: "no answer", Process: true})
	require.Equal(t, []string{"agent:spawn_error"}, events(w.last))
	w.host(crewbody.Exited{Run: run, Code: 0})
	w.host(crewbody.Exited{Run: run, Code: 0})
	require.Equal(t, []map[string]any{{"agentId": agentID, "code": 1.0, "error": "no answer"}}, fields(w.all, "agent:exit"))

	// A process that never was has one end, too.
	w = newWorld(t).spawn()
	w.host(crewbody.StartFailed{Run: w.run(), Stage: crewbody.StageProcess, Error: "not in PATH"})
	require.Equal(t, []string{"agent:spawn_error", "agent:exit", "agent:crashed", "agent:status"}, events(w.last))
}

func TestTerminateEndsTheAgentOnce(t *testing.T) {
	w := newWorld(t).start().crew(crewbody.Prompt{Text: "go"}).crew(crewbody.Prompt{Text: "later", FromID: "b"})
	w.crew(crewbody.Terminate{Reason: "done"})
	require.Equal(t, []crewbody.Stop{{AgentID: agentID, Run: w.run(), Reason: "done"}}, bodies[crewbody.Stop](w.last))
	require.Equal(t, "b", bodies[crewbody.Dropped](w.last)[0].FromID)
	require.Equal(t, view.Terminated, w.view().Status)
	w.crew(crewbody.Terminate{})
	require.Empty(t, w.last)
	w.exit(0)
	require.Equal(t, []string{"agent:response_end", "agent:exit", "agent:terminated"}, events(w.last))
	require.Equal(t, view.Terminated, w.view().Status, "not completed: it was asked for")
	require.Equal(t, crewbody.ExitTerminated, bodies[crewbody.AgentExited](w.last)[0].Cause)
	require.Len(t, bodies[crewbody.AgentEnded](w.last), 1)

	w.crew(crewbody.Prompt{Text: "hello?", FromID: "b"})
	require.Len(t, bodies[crewbody.Dropped](w.last), 1)
	require.False(t, removed(w.state(), w.now.Add(29*time.Second).UnixMilli()))
	require.True(t, removed(w.state(), w.now.Add(30*time.Second).UnixMilli()))
	w.pass(8 * 24 * time.Hour)
	require.Nil(t, w.state())
}

func TestCrashedAgentIsTerminatedBeforeItsRestart(t *testing.T) {
	w := newWorld(t).start().exit(1).crew(crewbody.Prompt{Text: "waits", FromID: "b"}).crew(crewbody.Terminate{})
	require.Equal(t, []string{"agent:terminated", "agent:status"}, events(w.last), "its process has had its exit")
	require.Len(t, bodies[crewbody.Dropped](w.last), 1)
	require.Equal(t, crewbody.ExitTerminated, bodies[crewbody.AgentExited](w.last)[0].Cause)
	require.Equal(t, view.Terminated, w.view().Status)
	w.pass(time.Minute)
	require.Empty(t, w.last)
	w.crew(crewbody.Restart{})
	require.Empty(t, w.last)
}
