package agent

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// commandIDs returns the IDs of the commands that were sent.
func commandIDs(effects []mailbox.Effect) (ids []string) {
	for _, e := range effects {
		if m, ok := e.(mailbox.Mail); ok && m.Input.Kind == (crewbody.Command{}).Kind() {
			ids = append(ids, m.Input.InputID)
		}
	}
	return ids
}

// repository writes a note as the repository does.
func (w *world) repository(text, commandID string) *world {
	w.tb.Helper()
	w.numbers["repository"]++
	return w.write("repository/"+repo, w.numbers["repository"], crewbody.Note{Text: text, CommandID: commandID})
}

func (w *world) reports() int { return len(bodies[crewbody.AgentIdle](w.last)) }

func TestIdlenessIsToldAfterHalfASecondWithoutATurn(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).endTurn()
	require.Equal(t, view.Idle, w.view().Status)
	w.pass(idleAfter - time.Millisecond)
	require.Empty(t, w.last)
	w.pass(time.Millisecond)
	require.Equal(t, view.Idle, fields(w.last, "agent:status")[0]["status"])
	require.Equal(t, 1, w.reports())
	require.Equal(t, view.Idle, bodies[crewbody.AgentChanged](w.last)[0].Status)
	w.beat(time.Minute)
	require.Empty(t, w.last, "once")
}

func TestTurnCancelsTheReportOfIdleness(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).endTurn().pass(idleAfter - time.Millisecond)
	w.crew(normal("go on"))
	require.Empty(t, fields(w.last, "agent:status"), "the agent was not idle for clients")
	w.pass(10 * time.Second)
	require.Empty(t, w.last)
	require.Equal(t, 1, w.rest().reports())
}

// A pause holds a message back, and the agent is not finished before it was delivered or dropped.
func TestMessageThatWaitsHoldsBackTheReportOfIdleness(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).crew(crewbody.Pause{Paused: true}).crew(normal("later")).rest()
	require.Len(t, fields(w.last, "agent:status"), 1)
	require.Zero(t, w.reports())
	w.crew(crewbody.ClearQueue{})
	require.Equal(t, 1, w.pass(idleAfter).reports())
}

func TestClearedQueueMakesNoAgentIdleWithoutAProcess(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).endTurn()
	w.host(crewbody.Exited{Run: w.run(), Stopped: true})
	w.crew(normal("later")).crew(crewbody.ClearQueue{})
	require.Equal(t, view.Creating, w.view().Status)
	w.pass(time.Minute)
	require.Empty(t, fields(w.last, "agent:status"))
	require.Zero(t, w.reports())

	w.epoch++
	w.host(crewbody.HostStarted{Host: hostID, Epoch: w.epoch}).crew(crewbody.ClearQueue{})
	require.Equal(t, view.Creating, w.view().Status, "it has no session yet")
	require.Equal(t, 1, w.ready("s1", true).pass(idleAfter).reports(), "the turn that has ended is reported")
}

func TestAgentIsNotIdleBeforeItsCommandsAreAnswered(t *testing.T) {
	for name, text := range map[string]string{
		"lock": `⟦⟦ LOCK_FILE {"filePath":"a.go"} ⟧⟧`, "commit": `⟦⟦ COMMIT {"message":"m"} ⟧⟧`, "crew": `⟦⟦ QUERY_CREW ⟧⟧`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).start().crew(normal("go")).say(text)
			id := commandIDs(w.last)[0]
			w.rest()
			require.Len(t, fields(w.last, "agent:status"), 1, "it runs no turn")
			require.Zero(t, w.reports())
			w.pass(20 * time.Second)
			require.Zero(t, w.reports())
			w.crew(crewbody.Note{Text: "the answer", CommandID: id})
			require.Equal(t, []string{"the answer"}, prompts(w.last))
			require.Equal(t, 1, w.rest().reports())
		})
	}
}

func TestCommandsWithoutAnAnswerAreNotAwaited(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say(`⟦⟦ BROADCAST {"content":"hi"} ⟧⟧ ⟦⟦ PROGRESS {"percent":5} ⟧⟧`)
	require.Equal(t, 1, w.rest().reports())
}

// A receipt of git may take long, and the answer to a later commit longer.
func TestCommitIsAwaitedUntilItsReceipt(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say(`⟦⟦ COMMIT {"message":"a"} ⟧⟧ ⟦⟦ COMMIT {"message":"b"} ⟧⟧`)
	ids := commandIDs(w.last)
	w.repository("COMMIT waits for your commit before it.", "").endTurn()
	require.Zero(t, w.rest().reports(), "both commits are open")
	w.beat(time.Minute)
	require.Zero(t, w.reports())
	w.repository("COMMIT: a", ids[0])
	require.Zero(t, w.rest().reports(), "the second commit is open")
	w.repository("COMMIT failed: b", ids[1])
	require.Equal(t, []string{"COMMIT failed: b"}, prompts(w.last))
	require.Equal(t, 1, w.rest().reports())
}

func TestNotesThatAnswerNoCommandDoNotEndTheWait(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say(`⟦⟦ COMMIT {"message":"m"} ⟧⟧`)
	id := commandIDs(w.last)[0]
	w.rest()
	for _, text := range []string{"A person has released your lock on a.go.", "Your lock on b.go has expired."} {
		w.repository(text, "")
		require.Equal(t, []string{text}, prompts(w.last))
		require.Zero(t, w.rest().reports(), "git has not answered")
	}
	w.repository("COMMIT: m", id)
	require.Equal(t, 1, w.rest().reports())
}

func TestAnswerThatIsLostDelaysTheReportOfIdlenessForALimitedTime(t *testing.T) {
	for text, timeout := range map[string]time.Duration{
		`⟦⟦ LOCK_FILE {"filePath":"a.go"} ⟧⟧`: answerTimeout, `⟦⟦ COMMIT {"message":"m"} ⟧⟧`: commitTimeout,
	} {
		w := newWorld(t).start().crew(normal("go")).say(text).rest()
		w.beat(timeout - idleAfter - time.Millisecond)
		require.Zero(t, w.reports(), text)
		w.pass(time.Millisecond)
		require.Equal(t, 1, w.reports(), text)
		require.Empty(t, w.state().Awaited)
	}
}

// The host is killed after the end of a turn and before the crew was told. The agent has still ended the turn.
func TestEndOfATurnIsReportedAfterTheLossOfTheHost(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).endTurn().hostAgain()
	require.Empty(t, prompts(w.last))
	require.Equal(t, 1, w.pass(idleAfter).reports())

	// A crash ends what the agent had to do.
	w = newWorld(t).start().crew(normal("go")).endTurn().exit(1).pass(2*time.Second).crew(crewbody.Restart{}).ready("s1", true)
	require.Zero(t, w.pass(time.Minute).reports())
}

// The next process gets no turn in place of one that was cancelled, or interrupted too often.
func TestTurnThatEndsWithTheHostIsReportedOnce(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say("I begin.").crew(crewbody.Interrupt{})
	w.host(crewbody.Exited{Run: w.run(), Stopped: true}).hostAgain()
	require.Equal(t, 1, w.pass(time.Second).reports())
	require.Equal(t, outcomeCancelled, bodies[crewbody.AgentIdle](w.last)[0].StopReason)

	w = newWorld(t).start().crew(normal("go"))
	w.all = nil
	for range mostInterruptions {
		w.hostAgain()
		require.Len(t, prompts(w.last), 1)
		w.beat(time.Second)
		require.Zero(t, w.reports(), "the turn was sent again")
	}
	w.hostAgain()
	require.Empty(t, prompts(w.last))
	require.Equal(t, 1, w.pass(time.Second).reports())
	require.Len(t, bodies[crewbody.AgentIdle](w.all), 1)
}

// The repository does not answer the commands of an agent that has ended. The agent may continue its session nevertheless.
func TestCommandsOfACrashedProcessAreNotAwaited(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say(`⟦⟦ COMMIT {"message":"m"} ⟧⟧`).exit(1)
	require.Len(t, bodies[crewbody.AgentEnded](w.last), 1)
	w.pass(2*time.Second).crew(crewbody.Restart{}).ready("s1", true).crew(normal("go on"))
	require.Equal(t, []string{"go on"}, prompts(w.last))
	require.Equal(t, 1, w.rest().reports())

	// A host that was killed gets the commit again, and the agent keeps its locks.
	w = newWorld(t).start().crew(normal("go")).say(`⟦⟦ COMMIT {"message":"m"} ⟧⟧`)
	id := commandIDs(w.last)[0]
	w.hostAgain()
	require.Zero(t, w.rest().reports())
	require.Equal(t, 1, w.repository("COMMIT: m", id).rest().reports())
}

func TestAwaitedCommandsAreBounded(t *testing.T) {
	w := newWorld(t).start().crew(normal("go"))
	for i := range 2 * awaitedLimit {
		w.say(`⟦⟦ LOCK_FILE {"filePath":"` + strconv.Itoa(i) + `"} ⟧⟧`)
	}
	require.Len(t, w.state().Awaited, awaitedLimit)
}

// A repeat of the answer, or of the deadline, changes nothing.
func TestIdlenessIsReportedOnceUnderRedelivery(t *testing.T) {
	w := newWorld(t).start().crew(normal("go")).say(`⟦⟦ QUERY_CREW ⟧⟧`)
	w.crew(crewbody.Note{Text: "the answer", CommandID: commandIDs(w.last)[0]}).endTurn().rest()
	require.Equal(t, 1, w.reports())
	for _, l := range w.logged {
		for _, e := range w.apply(l) {
			require.NotContains(t, []string{"agent_idle", "agent_changed"}, e.(mailbox.Mail).Input.Kind)
		}
	}
}
