package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/topics"
)

// hostAgain plays that the host was killed and starts anew, and that the agent continues its session.
func (w *world) hostAgain() *world {
	w.tb.Helper()
	w.epoch++
	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch})
	return w.ready("s1", true)
}

func TestPromptThatALostHostWasToldIsSentAgain(t *testing.T) {
	w := newWorld(t).start()
	w.crew(crewbody.Prompt{Text: "one", FromID: "user"}) // a prompt for a host that is gone
	require.Equal(t, []string{"one"}, prompts(w.last))
	w.crew(crewbody.Prompt{Text: "two", FromID: "user"})
	require.Empty(t, prompts(w.last))
	w.hostAgain()
	require.Equal(t, []string{"one\ntwo"}, prompts(w.last))
	w.endTurn()
	require.Empty(t, prompts(w.last))
}

func TestAgentIsToldAgainOfATurnThatItsHostHasInterrupted(t *testing.T) {
	w := newWorld(t).start()
	w.crew(crewbody.Prompt{Text: "one", FromID: "user"})
	w.say("I begin.").hostAgain()
	require.Equal(t, []string{interruptedNote}, prompts(w.last), "its session has the prompt")
	w.endTurn().hostAgain()
	require.Empty(t, prompts(w.last), "a turn that has ended is not repeated")

	// A host that is stopped cleanly interrupts turns, too.
	w.crew(crewbody.Prompt{Text: "two", FromID: "user"}).say("I begin.")
	w.host(crewbody.Exited{Run: w.run(), Stopped: true}).hostAgain()
	require.Equal(t, []string{interruptedNote}, prompts(w.last))

	// A session that cannot be continued is followed by one that has nothing of the prompt.
	w.endTurn().host(crewbody.Started{Run: w.run()}).crew(crewbody.Prompt{Text: "three", FromID: "user"}).say("I begin.")
	w.epoch++
	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch}).ready("s2", false)
	require.Equal(t, []string{"You are a developer."}, prompts(w.last))
	require.Equal(t, []string{interruptedNote + "\nthree"}, prompts(w.endTurn().last))
}

// The row does not keep a long message that the agent has got: its session has it.
func TestLongMessageOfAnInterruptedTurn(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	w := newWorld(t).start().crew(crewbody.Prompt{Text: long, FromID: "b"}).say("I begin.")
	require.Less(t, len(w.row), 8<<10)
	w.hostAgain()
	require.Equal(t, []string{interruptedNote}, prompts(w.last))
	require.Empty(t, bodies[crewbody.Dropped](w.all))

	// An agent that cannot continue its session has it no more.
	w.endTurn().host(crewbody.Started{Run: w.run()}).crew(crewbody.Prompt{Text: long, FromID: "b"}).say("I begin.")
	w.epoch++
	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch})
	require.Equal(t, "b", bodies[crewbody.Dropped](w.last)[0].FromID)
}

// The gate of a permission that was open when the host was killed ends once, and the next process asks again.
func TestOpenPermissionOfALostHostEndsOnceAndIsAskedAgain(t *testing.T) {
	w := newWorld(t).start().crew(crewbody.Prompt{Text: "one", FromID: "user"})
	w.host(permissionOf(w.run(), "ask-1"))
	first := w.state().Permissions.Waiting[0].GateId
	w.all = nil
	w.hostAgain()
	require.Empty(t, w.state().Permissions.Waiting)
	w.host(permissionOf(w.run(), "ask-1")) // hosts count anew for each process
	second := w.state().Permissions.Waiting[0].GateId
	require.NotEqual(t, first, second)
	before := len(w.all)
	w.door(crewbody.GateEnded{GateID: first, Status: topics.GateApproved})
	require.Len(t, w.all, before, "an answer to the first")
	w.door(crewbody.GateEnded{GateID: second, Status: topics.GateApproved})
	require.Equal(t, w.run(), bodies[crewbody.Answer](w.last)[0].Run)
	resolved := fields(w.all, "agent:permission_resolved")
	require.Len(t, resolved, 2)
	require.Equal(t, []any{first, second}, []any{resolved[0]["requestId"], resolved[1]["requestId"]})
	require.Equal(t, "cancelled", resolved[0]["outcome"])
}

// A message that ends the host each time is not sent for ever.
func TestMessageThatInterruptsEachTimeIsDropped(t *testing.T) {
	w := newWorld(t).start().crew(crewbody.Prompt{Text: "one", FromID: "b"})
	for range 3 {
		w.hostAgain()
		require.Len(t, prompts(w.last), 1)
	}
	w.hostAgain()
	require.Empty(t, prompts(w.last))
	require.Equal(t, []crewbody.Dropped{{AgentID: agentID, FromID: "b", Reason: "the host was stopped during the turn"}},
		bodies[crewbody.Dropped](w.all))
	w.crew(crewbody.Prompt{Text: "two", FromID: "b"})
	require.Equal(t, []string{"two"}, prompts(w.last))
}

func TestFirstPromptThatAgentsHaveBegun(t *testing.T) {
	w := newWorld(t).spawn().ready("s1", false).say("I begin.").hostAgain()
	require.Equal(t, []string{interruptedNote}, prompts(w.last), "the session has the first prompt")

	w = newWorld(t).spawn().ready("s1", false).host(crewbody.Started{Run: "r"})
	w.host(crewbody.Started{Run: w.run()}).say("I begin.") // no session to continue
	w.epoch++
	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch}).ready("s2", false)
	require.Equal(t, []string{"You are a developer."}, prompts(w.last))
	require.Empty(t, prompts(w.endTurn().last))
}

func TestFirstPromptThatALostHostWasToldIsSentAgain(t *testing.T) {
	w := newWorld(t).spawn().ready("s1", false)
	require.Equal(t, []string{"You are a developer."}, prompts(w.last))
	w.hostAgain()
	require.Equal(t, []string{"You are a developer."}, prompts(w.last))
	w.endTurn().hostAgain()
	require.Empty(t, prompts(w.last))
}

func TestCancelledPromptIsNotSentAgain(t *testing.T) {
	w := newWorld(t).start()
	w.crew(crewbody.Prompt{Text: "one", FromID: "user"})
	w.crew(crewbody.Interrupt{Text: "stop", FromID: "lead"})
	w.hostAgain()
	require.Equal(t, []string{"stop"}, prompts(w.last))
}

// What waits after the losses of a host is more than a queue holds. It is sent in prompts that fit into records.
func TestMessagesOfLostHostsFitIntoRecords(t *testing.T) {
	w := newWorld(t).start()
	var messages []string
	fill := func(unit string) {
		for i := range 40 {
			text := fmt.Sprintf("<%d>%s", len(messages), strings.Repeat(unit, 9500/len(unit)))
			before := len(bodies[crewbody.Dropped](w.all))
			if w.crew(crewbody.Prompt{Text: text, FromID: "b", Priority: i%2 == 0}); len(bodies[crewbody.Dropped](w.all)) == before {
				messages = append(messages, text)
			}
			w.fits(w.last)
		}
	}
	for _, unit := range []string{"x", "\u0001", "\u0001"} {
		fill(unit)
		w.hostAgain()
		w.fits(w.last)
	}
	require.Greater(t, len(messages), 45)
	for w.state().Turn != nil {
		w.endTurn().fits(w.last)
	}
	sent := strings.Join(prompts(w.all), "\n")
	for _, text := range messages {
		require.Contains(t, sent, text[:strings.Index(text, ">")+1])
	}
}
