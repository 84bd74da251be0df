package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func urgent(text string) crewbody.Prompt {
	return crewbody.Prompt{Text: text, Priority: true, FromID: "b"}
}

func normal(text string) crewbody.Prompt { return crewbody.Prompt{Text: text, FromID: "b"} }

func TestA13_PromptsDuringATurnAreMergedAtItsEnd(t *testing.T) {
	w := newWorld(t).start().crew(normal("go"))
	require.Equal(t, []string{"go"}, prompts(w.last))
	for _, p := range []crewbody.Prompt{normal("n1"), urgent("u1"), normal("n2"), urgent("u2")} {
		w.crew(p)
		require.Empty(t, prompts(w.last))
	}
	w.door(crewbody.Prompt{Text: "look", FromID: "user", Priority: true, Blocks: topics.Raw(`[{"type":"image","data":"AA=="}]`)})
	require.Equal(t, 5, w.view().PendingMessages)
	w.endTurn()
	sent := bodies[crewbody.Send](w.last)
	require.Len(t, sent, 1)
	require.JSONEq(t, `[{"type":"text","text":"u1\nu2\nlook\nn1\nn2"},{"type":"image","data":"AA=="}]`, string(sent[0].Blocks))
	require.Empty(t, fields(w.last, "agent:status"), "the agent was not idle")
	require.Empty(t, bodies[crewbody.AgentIdle](w.last))
	require.Zero(t, w.view().PendingMessages)
	w.rest()
	require.Empty(t, prompts(w.last))
	require.Len(t, bodies[crewbody.AgentIdle](w.last), 1)

	// What comes before the session is ready waits for the end of the first turn.
	w = newWorld(t).spawn().crew(normal("early"))
	require.Empty(t, prompts(w.last))
	require.Equal(t, []string{"You are a developer."}, prompts(w.ready("s1", false).last))
	require.Equal(t, []string{"early"}, prompts(w.endTurn().last))
}

func TestA15_NewestNotesAreOneMessage(t *testing.T) {
	w := newWorld(t).start().crew(normal("go"))
	var want []string
	for i := range 60 {
		w.crew(crewbody.Note{Text: fmt.Sprint("note ", i)})
		if i >= 10 {
			want = append(want, fmt.Sprint("note ", i))
		}
	}
	require.Equal(t, 1, w.view().PendingMessages)
	w.endTurn()
	require.Equal(t, []string{strings.Join(want, "\n")}, prompts(w.last))

	w.crew(crewbody.Note{Text: "a"}).crew(crewbody.Terminate{}).exit(0)
	w.spawn().ready("s2", false).endTurn()
	require.Empty(t, prompts(w.last), "terminate clears the notes")
	w.crew(crewbody.Note{Text: "b"})
	require.Equal(t, []string{"b"}, prompts(w.last), "an idle agent gets a note at once")
}

func TestB08_FullQueueDropsNormalMessagesOnly(t *testing.T) {
	// The longest messages that commands allow: 384 KiB of urgent ones wait, beside the normal ones.
	long := strings.Repeat("x", 50_000)
	w := newWorld(t).start().crew(normal("go"))
	for len(bodies[crewbody.Dropped](w.last)) == 0 {
		w.crew(normal(long))
	}
	for i := range 7 {
		w.crew(urgent(long))
		require.Empty(t, bodies[crewbody.Dropped](w.last), "urgent message %d", i)
	}
	w.crew(urgent(long))
	require.Equal(t, []crewbody.Dropped{{AgentID: agentID, FromID: "b", Reason: "the messages that wait for the agent are too large"}},
		bodies[crewbody.Dropped](w.last), "a row has an end")
	w.endTurn().fits(w.last)
	require.Equal(t, 10, strings.Count(prompts(w.last)[0], long), "all in one prompt")
	w.crew(urgent(long)).crew(normal(long))
	require.Empty(t, bodies[crewbody.Dropped](w.last), "there is room again")

	w = newWorld(t).start().crew(normal("go"))
	for i := range queueLimit {
		w.crew(normal(fmt.Sprint("n", i)))
		require.Empty(t, bodies[crewbody.Dropped](w.last))
	}
	w.crew(normal("too many"))
	require.Equal(t, []crewbody.Dropped{{AgentID: agentID, FromID: "b", Reason: "too many messages wait for the agent"}},
		bodies[crewbody.Dropped](w.last))
	w.crew(urgent("u"))
	require.Empty(t, bodies[crewbody.Dropped](w.last))
	w.endTurn()
	text := prompts(w.last)[0]
	require.True(t, strings.HasPrefix(text, "u\nn0\nn1\n"))
	require.True(t, strings.HasSuffix(text, "\nn199"))
	w.crew(normal("again"))
	require.Empty(t, bodies[crewbody.Dropped](w.last), "there is room again")
}

func TestB09_PauseHoldsBackAndResumeDeliversInOrder(t *testing.T) {
	w := newWorld(t).start().crew(crewbody.Pause{Paused: true})
	w.crew(normal("n1")).crew(urgent("u1")).crew(crewbody.Note{Text: "note"}).crew(normal("n2"))
	require.Equal(t, []string{"You are a developer."}, prompts(w.all), "nothing since the pause")
	require.Equal(t, view.Idle, w.view().Status)
	w.crew(crewbody.Pause{})
	require.Equal(t, []string{"u1\nnote\nn1\nn2"}, prompts(w.last))

	// A pause does not end a turn, and holds back what waits at its end.
	w.crew(crewbody.Pause{Paused: true}).crew(normal("n3")).rest()
	require.Empty(t, prompts(w.last))
	require.Empty(t, bodies[crewbody.AgentIdle](w.last), "something waits")
	require.Equal(t, []string{"n3"}, prompts(w.crew(crewbody.Pause{}).last))
}

func TestInterruptCancelsTheTurnAndKeepsTheQueue(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).crew(normal("of another agent"))
	w.crew(crewbody.Interrupt{Text: "stop that", FromID: "lead"})
	require.Equal(t, []crewbody.Cancel{{
		AgentID: agentID, Run: w.run(), PromptID: w.state().Turn.PromptId, SessionID: "s1",
	}}, bodies[crewbody.Cancel](w.last))
	w.crew(crewbody.Interrupt{Text: "really"})
	require.Len(t, bodies[crewbody.Cancel](w.last), 1, "the agent may have lost the first one")
	w.host(crewbody.TurnEnded{Run: w.run(), PromptID: w.state().Turn.PromptId, StopReason: "cancelled"})
	require.Equal(t, []string{"stop that\nreally\nof another agent"}, prompts(w.last))

	w = newWorld(t).start().crew(crewbody.Interrupt{Text: "you"})
	require.Empty(t, bodies[crewbody.Cancel](w.last))
	require.Equal(t, []string{"you"}, prompts(w.last), "an idle agent has no turn to cancel")
}

func TestRefreshIsDeliveredAtTheEndOfATurnIfItIsNews(t *testing.T) {
	w := newWorld(t).start().crew(crewbody.Refresh{Text: "update 0", Digest: "d0"})
	require.Empty(t, w.last, "an idle agent is not disturbed")
	w.crew(normal("go")).crew(crewbody.Refresh{Text: "update 1", Digest: "d1"}).crew(crewbody.Refresh{Text: "update 2", Digest: "d2"})
	w.crew(normal("next")).endTurn()
	require.Equal(t, []string{"next\nupdate 2"}, prompts(w.last))
	w.crew(crewbody.Refresh{Text: "update 2, a minute later", Digest: "d2"}).endTurn()
	require.Empty(t, prompts(w.last))
	w.crew(crewbody.Refresh{Text: "update 3", Digest: "d3"})
	require.Equal(t, []string{"update 3"}, prompts(w.last), "the crew takes the agent for running: the update was on its way")
	w.rest().crew(crewbody.Refresh{Text: "update 4", Digest: "d4"})
	require.Empty(t, w.last, "an idle agent is not disturbed")
}

func refreshed(text string) crewbody.Refresh {
	return crewbody.Refresh{Text: "update " + text, Digest: text}
}

func TestRefreshThatIsOutOfDateIsNotDelivered(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).crew(refreshed("A")).endTurn()
	require.Equal(t, []string{"update A"}, prompts(w.last))
	w.crew(refreshed("B")).crew(refreshed("A")).endTurn()
	require.Empty(t, prompts(w.last), "the agent knows A")
}

// The crew's answer to a compaction is the update that the agent had before.
func TestC06_CompactionDeliversTheUpdateThatTheAgentHad(t *testing.T) {
	usage := func(used string) topics.Raw {
		return topics.Raw(`{"sessionUpdate":"usage_update","used":` + used + `,"size":200000}`)
	}
	compacted := func() *world {
		w := newWorld(t).start().crew(normal("go")).crew(refreshed("A")).endTurn()
		require.Equal(t, []string{"update A"}, prompts(w.last))
		w.updates(false, usage("100000"), usage("20000"))
		require.Len(t, bodies[crewbody.Compacted](w.last), 1)
		return w
	}
	w := compacted().crew(refreshed("A")).endTurn()
	require.Equal(t, []string{"update A"}, prompts(w.last))
	w.crew(refreshed("A")).endTurn()
	require.Empty(t, prompts(w.last), "once")

	// The turn ends before the update arrives: the crew has not heard yet that the agent is idle.
	w = compacted().endTurn().crew(refreshed("A"))
	require.Equal(t, []string{"update A"}, prompts(w.last))
}

// An agent gets an update that it had before if it may not know it any more.
func TestC10_UnchangedRefreshIsDeliveredAgainAfterAResetOnly(t *testing.T) {
	usage := func(used string) topics.Raw {
		return topics.Raw(`{"sessionUpdate":"usage_update","used":` + used + `,"size":200000}`)
	}
	for name, c := range map[string]struct {
		reset func(w *world)
		again bool
	}{
		"no reset":   {func(w *world) { w.endTurn() }, false},
		"compaction": {func(w *world) { w.updates(false, usage("100000"), usage("20000")).endTurn() }, true},
		"failed prompt": {func(w *world) {
			w.host(crewbody.TurnEnded{Run: w.run(), PromptID: w.state().Turn.PromptId, Error: "x"})
		}, true},
		"refusal": {func(w *world) {
			w.host(crewbody.TurnEnded{Run: w.run(), PromptID: w.state().Turn.PromptId, StopReason: "refusal"})
		}, true},
		"prompt that was lost": {func(w *world) { w.hostAgain() }, true},
		"continued session":    {func(w *world) { w.say("I see.").hostAgain().endTurn() }, false},
		"crash": {func(w *world) {
			w.say("I see.").exit(1).pass(2*time.Second).crew(crewbody.Restart{}).ready("s1", true)
		}, false},
		"new session": {func(w *world) {
			w.endTurn().host(crewbody.Started{Run: w.run()}) // it cannot continue sessions
			w.exit(1).pass(2*time.Second).crew(crewbody.Restart{}).ready("s2", false).endTurn()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).start().crew(normal("go")).crew(refreshed("A")).endTurn()
			require.Equal(t, []string{"update A"}, prompts(w.last))
			c.reset(w)
			w.crew(normal("next")).crew(refreshed("A"))
			w.endTurn()
			if c.again {
				require.Equal(t, []string{"update A"}, prompts(w.last))
			} else {
				require.Empty(t, prompts(w.last))
			}
		})
	}
}

func TestClearedMessagesAreReported(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).crew(normal("a")).crew(urgent("b")).crew(crewbody.ClearQueue{})
	require.Len(t, bodies[crewbody.Dropped](w.last), 2)
	require.Empty(t, prompts(w.endTurn().last))
}

// The merged prompt, the row and every record stay far below 1 MiB, whatever the messages are.
func TestQueueIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"tiny": "x", "long": strings.Repeat("x", 50_000), "control characters": strings.Repeat("\x01", 20_000),
		"wide characters": strings.Repeat("⟦", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.spawned.Prompt, w.spawned.Task = text, text
			w.start().crew(normal("go")).say(text)
			accepted := 0
			for range 200 {
				for _, p := range []crewbody.Prompt{urgent(text), normal(text)} {
					w.crew(p)
					if len(bodies[crewbody.Dropped](w.last)) == 0 {
						accepted++
					}
				}
				w.crew(crewbody.Note{Text: text})
			}
			require.Positive(t, accepted)
			require.Less(t, proto.Size(w.state()), rowLimit)
			w.endTurn()
			sent := bodies[crewbody.Send](w.last)
			require.Len(t, sent, 1)
			require.Less(t, len(crewbody.Encode(sent[0])), 700<<10)
		})
	}
}

func TestContentBlocksThatAreNoListAreReported(t *testing.T) {
	w := newWorld(t).start().door(crewbody.Prompt{Text: "look", FromID: "user", Blocks: topics.Raw(`{"type":"image"}`)})
	require.Equal(t, "user", bodies[crewbody.Dropped](w.last)[0].FromID)
	require.Empty(t, prompts(w.last))
}
