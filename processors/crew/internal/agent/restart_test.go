package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestV01_SilentAgentIsReportedOncePerSilence(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).beat(5*time.Minute - time.Millisecond)
	require.Empty(t, fields(w.last, "agent:hung"), "beats of the host are no output, and it is not yet time")
	w.pass(time.Millisecond)
	require.Equal(t, []map[string]any{{"agentId": agentID, "elapsedMs": 300_000.0}}, fields(w.last, "agent:hung"))
	require.Equal(t, view.Running, w.view().Status, "the turn is still open")
	w.beat(20 * time.Minute)
	require.Empty(t, fields(w.last, "agent:hung"), "once per silence")

	w.say("still here").beat(4*time.Minute).updates(false, topics.Raw(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"x"}`))
	w.beat(4 * time.Minute)
	require.Empty(t, fields(w.last, "agent:hung"), "a tool call is output, too")
	w.beat(time.Minute)
	require.Len(t, fields(w.last, "agent:hung"), 1, "the next silence")

	w.endTurn().beat(time.Hour)
	require.Empty(t, fields(w.last, "agent:hung"), "an idle agent is silent")
	w.crew(normal("go")).exit(0).pass(time.Hour)
	require.Empty(t, fields(w.last, "agent:hung"), "an agent that has ended is silent")
}

func TestV02_CrashedAgentIsRestartedUpToTheLimit(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).crew(normal("later"))
	for crash := 1; crash <= 2; crash++ {
		w.exit(7)
		require.Contains(t, events(w.last), "agent:crashed")
		require.Equal(t, 7.0, fields(w.last, "agent:crashed")[0]["code"])
		end := bodies[crewbody.AgentExited](w.last)[0]
		require.Equal(t, crewbody.ExitCrash, end.Cause)
		require.Equal(t, crash, end.Crashes)
		require.True(t, end.Restarting)
		require.Equal(t, view.Failed, w.view().Status)
		require.Empty(t, bodies[crewbody.Start](w.pass(1999*time.Millisecond).last))
		require.Empty(t, bodies[crewbody.RestartDue](w.last))
		w.pass(time.Millisecond)
		require.Equal(t, []crewbody.RestartDue{{AgentID: agentID, Crashes: crash}}, bodies[crewbody.RestartDue](w.last))
		require.Empty(t, bodies[crewbody.Start](w.last), "the crew is asked first")
		w.crew(crewbody.Restart{})
		require.Equal(t, []string{"agent:auto_restarted", "agent:status"}, events(w.last))
		require.Equal(t, map[string]any{"agentId": agentID, "crashCount": float64(crash), "previousAgentId": agentID},
			fields(w.last, "agent:auto_restarted")[0])
		require.Equal(t, "s1", bodies[crewbody.Start](w.last)[0].SessionID)
		w.ready("s1", true)
		if crash == 1 {
			require.Equal(t, []string{"later"}, prompts(w.last), "what waited is sent; what was interrupted is not repeated")
		}
	}
	w.crew(normal("x")).crew(normal("waits")).exit(7)
	require.Contains(t, events(w.last), "agent:restart_limit")
	require.False(t, bodies[crewbody.AgentExited](w.last)[0].Restarting)
	require.Len(t, bodies[crewbody.Dropped](w.last), 1)
	w.pass(time.Hour)
	require.Empty(t, w.last)
	require.False(t, Live(w.state()))
}

func TestV03_CleanExitAndTerminateAreNoCrash(t *testing.T) {
	w := newWorld(t).start()
	crash := func() {
		w.exit(1).pass(2*time.Second).crew(crewbody.Restart{}).ready("s1", true)
	}
	crash()
	crash()
	w.exit(0)
	require.NotContains(t, events(w.last), "agent:crashed")
	require.Equal(t, view.Completed, w.view().Status)
	require.Equal(t, crewbody.ExitClean, bodies[crewbody.AgentExited](w.last)[0].Cause)
	require.Zero(t, w.state().Crashes)

	w = newWorld(t).start()
	crash()
	crash()
	w.crew(crewbody.Terminate{}).exit(143)
	require.NotContains(t, events(w.last), "agent:crashed", "a terminated process may end with any code")
	require.Equal(t, view.Terminated, w.view().Status)
	require.Zero(t, w.state().Crashes)
	w.crew(crewbody.Restart{Manual: true}).ready("s1", true)
	crash()
	require.EqualValues(t, 1, w.state().Crashes)
}

func TestV04_AgentWithoutParentIsNotRestarted(t *testing.T) {
	w := newWorld(t).start().exit(1).crew(normal("waits")).pass(2 * time.Second)
	require.Len(t, bodies[crewbody.RestartDue](w.last), 1)
	w.crew(crewbody.Restart{Refused: true})
	require.Empty(t, bodies[crewbody.Start](w.last))
	require.Len(t, bodies[crewbody.Dropped](w.last), 1)
	require.False(t, Live(w.state()))
	require.Equal(t, view.Failed, w.view().Status)
	w.crew(crewbody.Restart{})
	require.Empty(t, w.last, "an answer that nobody asked for")
}

func TestV05_RemovalOfTheOldProcessDoesNotRemoveItsReplacement(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"at once": 0, "just before": 30*time.Second - time.Millisecond, "at the boundary": 30 * time.Second, "later": 40 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).start().crew(crewbody.Terminate{}).exit(0).pass(after)
			require.Equal(t, after >= 30*time.Second, removed(w.state(), w.now.UnixMilli()))
			w.crew(crewbody.Restart{Manual: true})
			require.Len(t, bodies[crewbody.Start](w.last), 1)
			w.ready("s1", true).beat(time.Hour)
			require.False(t, removed(w.state(), w.now.UnixMilli()))
			require.Equal(t, view.Idle, w.view().Status)
			// The deadline of the old end is read late.
			w.door(crewbody.Due{AtMS: w.now.UnixMilli()})
			require.True(t, Live(w.state()))
		})
	}
}

func TestManualRestartEndsTheProcessFirst(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).crew(normal("waits")).crew(crewbody.Restart{Manual: true, Prompt: "new"})
	require.Len(t, bodies[crewbody.Stop](w.last), 1)
	require.Empty(t, bodies[crewbody.Start](w.last))
	require.Equal(t, view.Creating, w.view().Status, "the agent does not end")
	w.exit(0)
	require.Len(t, bodies[crewbody.Start](w.last), 1)
	require.True(t, bodies[crewbody.AgentExited](w.last)[0].Restarting)
	require.NotContains(t, events(w.last), "agent:terminated")
	w.ready("s9", false)
	require.Equal(t, []string{"new"}, prompts(w.last))
	require.Equal(t, []string{"waits"}, prompts(w.endTurn().last))
}

// A machine that is away says nothing for a long time. That is no crash of its agents, however long it takes.
func TestSilentHostIsAwaited(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).beat(time.Minute).pass(45*time.Second - time.Millisecond)
	require.Empty(t, events(w.last))
	run := w.run()
	w.pass(time.Millisecond)
	require.Equal(t, []string{"agent:problem", "agent:status"}, events(w.last))
	require.Equal(t, view.Creating, w.view().Status)
	require.Equal(t, view.Creating, bodies[crewbody.AgentChanged](w.last)[0].Status)
	require.Equal(t, "starting", w.view().Phase)
	w.pass(24 * time.Hour)
	require.Empty(t, w.last, "it is told once")
	require.True(t, Live(w.state()))

	t.Run("which was started anew", func(t *testing.T) {
		w := *w
		w.epoch++
		w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch})
		require.Zero(t, w.state().Crashes)
		require.Equal(t, "s1", bodies[crewbody.Start](w.last)[0].SessionID)
		require.NotEqual(t, run, w.run())
		w.ready("s1", true)
		require.Equal(t, view.Running, w.view().Status)
	})
	t.Run("which was cut off", func(t *testing.T) {
		w := *w
		w.say("still here")
		require.Equal(t, run, w.run())
		require.Equal(t, []string{"agent:text", "agent:status"}, events(w.last), "nothing is lost")
		require.Equal(t, view.Running, w.view().Status)
		w.rest()
		require.Equal(t, view.Idle, w.view().Status)
		require.Equal(t, []string{"agent:problem", "agent:status"}, events(w.pass(time.Hour).last), "the next silence")
	})
	t.Run("and whose silence is not that of the agent", func(t *testing.T) {
		w := *w
		w.host(crewbody.HostBeat{Run: run}).beat(5*time.Minute - time.Second)
		require.Empty(t, fields(w.last, "agent:hung"))
		require.Len(t, fields(w.beat(time.Second).last, "agent:hung"), 1)
	})
	t.Run("and whose agent is terminated", func(t *testing.T) {
		w := *w
		w.crew(crewbody.Terminate{})
		require.Equal(t, run, bodies[crewbody.Stop](w.last)[0].Run, "if the host comes back, it ends the process")
		require.Contains(t, events(w.last), "agent:terminated")
		require.False(t, Live(w.state()))
		w.host(crewbody.Exited{Run: run, Code: 0})
		require.Empty(t, w.last)
	})
	t.Run("and whose agent is restarted", func(t *testing.T) {
		w := *w
		w.crew(crewbody.Restart{Manual: true})
		require.Len(t, bodies[crewbody.Start](w.last), 1)
		require.Equal(t, view.Creating, w.view().Status)
	})
}

func TestProcessThatIsToEndIsGivenUpWithItsHost(t *testing.T) {
	w := newWorld(t).start().crew(crewbody.Terminate{}).pass(45 * time.Second)
	require.Equal(t, []string{"agent:exit", "agent:terminated"}, events(w.last))
	require.False(t, Live(w.state()))

	w = newWorld(t).spawn().crew(crewbody.Terminate{}).pass(time.Minute)
	require.Contains(t, events(w.last), "agent:terminated")
	require.False(t, Live(w.state()))
}

// The clock of a door is ahead. Its input must not end a process whose host is not silent.
func TestClockOfAnotherMachineEndsNothing(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).beat(time.Minute)
	now := w.now
	w.now = now.Add(55 * time.Second)
	w.door(crewbody.Autopilot{On: true})
	w.now = now
	w.beat(10 * time.Minute)
	require.Empty(t, fields(w.all, "agent:exit"))
}

func TestUnansweredStartWaitsForTheHost(t *testing.T) {
	w := newWorld(t).spawn().pass(time.Minute - time.Millisecond)
	require.Empty(t, w.last)
	run := w.run()
	w.pass(time.Millisecond)
	require.Equal(t, []string{"agent:spawn_error"}, events(w.last))
	require.Equal(t, view.Creating, w.view().Status)
	w.crew(normal("waits")).pass(24 * time.Hour)
	require.Empty(t, events(w.last), "it is told once")
	require.Less(t, len(bodies[crewbody.Start](w.last)), 40, "the host is asked again more and more seldom")
	require.Equal(t, run, w.run())
	require.Zero(t, w.state().Crashes)

	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch})
	require.Len(t, bodies[crewbody.Start](w.last), 1)
	require.Equal(t, run, w.run())
	require.Equal(t, []string{"You are a developer."}, prompts(w.ready("s1", false).last))
	require.Equal(t, []string{"waits"}, prompts(w.endTurn().last))

	// A host that was slow answers the first action.
	w = newWorld(t).spawn().pass(10 * time.Minute)
	w.ready("s1", false)
	require.Equal(t, view.Running, w.view().Status)
	w.exit(1)
	require.EqualValues(t, 1, w.state().Crashes, "a crash of the agent's own process counts")
}

func TestHostThatStartedAnewHasNoProcess(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).crew(normal("waits"))
	w.epoch++
	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch})
	require.Equal(t, []string{"agent:response_end", "agent:exit", "agent:status"}, events(w.last))
	end := bodies[crewbody.AgentExited](w.last)[0]
	require.Equal(t, crewbody.ExitHostStopped, end.Cause)
	require.Zero(t, end.Crashes)
	require.Equal(t, "s1", bodies[crewbody.Start](w.last)[0].SessionID)
	require.Empty(t, bodies[crewbody.AgentEnded](w.last), "the agent keeps its locks")
	w.ready("s1", true)
	require.Equal(t, []string{"go\nwaits"}, prompts(w.last))
	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch})
	require.Empty(t, w.last, "it is the run of the host that the agent knows")
}

func TestStoppedHostIsAwaited(t *testing.T) {
	w := newWorld(t).start()
	w.host(crewbody.Exited{Run: w.run(), Code: 0, Stopped: true})
	require.Equal(t, view.Creating, w.view().Status)
	w.crew(normal("waits")).pass(time.Hour)
	require.Empty(t, w.last)
	require.True(t, Live(w.state()))
	w.epoch++
	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch})
	require.Len(t, bodies[crewbody.Start](w.last), 1)
	require.Equal(t, []string{"waits"}, prompts(w.ready("s1", true).last))
}

// A host that starts may have missed the action. It gets the same one, so that no second process is started.
func TestUnansweredStartIsRepeatedForANewHost(t *testing.T) {
	w := newWorld(t).spawn()
	run := w.run()
	w.pass(50 * time.Second).host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch})
	require.Equal(t, run, w.run())
	require.Len(t, bodies[crewbody.Start](w.last), 1)
	require.Empty(t, events(w.last))
	require.Empty(t, w.pass(59*time.Second).last)
}

func TestRecordsOfAnEarlierProcessAreIgnored(t *testing.T) {
	w := newWorld(t).start()
	old := w.run()
	w.exit(1).pass(2*time.Second).crew(crewbody.Restart{}).ready("s1", true)
	require.NotEqual(t, old, w.run())
	for _, body := range []crewbody.Body{
		crewbody.Exited{Run: old},
		crewbody.Updates{Run: old},
		crewbody.TurnEnded{Run: old},
		crewbody.HostBeat{Run: old},
		crewbody.StartFailed{Run: old},
		crewbody.Permission{Run: old, RequestID: "1"},
		crewbody.Problem{Run: old},
	} {
		require.Empty(t, w.host(body).last)
	}
}

func TestUnknownInputsAreDeadLettered(t *testing.T) {
	w := newWorld(t).start().door(crewbody.LockAsked{})
	require.Len(t, w.last, 1)
	l := logged{topics.CrewInput{InputID: "x", Kind: "prompt", Body: topics.Raw(`{"text":7}`)}, w.now}
	require.Len(t, w.apply(l), 1)
	w = newWorld(t).crew(normal("nobody"))
	require.Empty(t, w.last)
	require.Nil(t, w.state())
}

// The host ended it for what it did, and the process took the end of its input for a reason to exit with 0.
func TestAgentThatItsHostEndsForMisbehaviourHasNotSucceeded(t *testing.T) {
	w := newWorld(t).start()
	w.host(crewbody.Exited{Run: w.run(), Error: "a line is longer than 16 MiB"})
	require.Contains(t, events(w.last), "agent:crashed")
	exited := bodies[crewbody.AgentExited](w.last)[0]
	require.Equal(t, crewbody.ExitCrash, exited.Cause)
	require.Equal(t, 1, exited.Code)
}

// Two hosts with one name began at the same time, and both started the agent. The row has heard the one that ends first.
func TestProcessOfALaterHostReplacesThatOfAnEarlierOne(t *testing.T) {
	w := newWorld(t).start()
	first := w.run()
	w.epoch++
	w.host(crewbody.Started{Run: first, Capabilities: topics.Raw(`{"loadSession":true}`)})
	require.Equal(t, "s1", bodies[crewbody.Start](w.last)[0].SessionID)
	require.NotEqual(t, first, w.run())
	w.host(crewbody.SessionReady{Run: first, SessionID: "of the other process"})
	w.ready("s1", true).crew(normal("go"))
	require.Equal(t, "s1", bodies[crewbody.Send](w.last)[0].SessionID)
}
