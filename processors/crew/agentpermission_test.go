package crew_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/topics"
)

const (
	crewAgentID = "11112222-3333-4444-5555-666677778888"
	crewOptions = `[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},
		{"optionId":"no","name":"No","kind":"reject_once"}]`
)

func TestP05_PendingAt59999msAndDeniedOnceAt60000ms(t *testing.T) {
	w := newCrewDriver(t)
	id := w.asks("r1", "npm test")
	w.wait(59_999 * time.Millisecond)
	require.Empty(t, w.answers())
	require.Len(t, w.view().Permissions, 1)
	w.wait(time.Millisecond)
	require.Equal(t, []string{"r1:  by deadline"}, w.answers(), "cancelled")
	require.Empty(t, w.view().Permissions)
	w.wait(10 * time.Minute)
	require.Empty(t, w.answers())
	outcomes := w.outcomes.Drain()
	require.Len(t, outcomes, 1)
	require.Equal(t, id, outcomes[0].Value.GateID)
	require.Equal(t, topics.GateTimedOut, outcomes[0].Value.Status)
}

func TestP06_LateAndRepeatedAnswersChangeNothing(t *testing.T) {
	w := newCrewDriver(t)
	late := w.asks("r1", "npm test")
	w.wait(time.Minute)
	require.Equal(t, []string{"r1:  by deadline"}, w.answers())
	w.decide(late, "d1", topics.VerdictApprove, "")
	require.Empty(t, w.answers())

	answered := w.asks("r2", "npm test")
	w.decide(answered, "d2", topics.VerdictApprove, "")
	require.Equal(t, []string{"r2: once by ines"}, w.answers())
	w.decide(answered, "d2", topics.VerdictApprove, "")
	w.decide(answered, "d3", topics.VerdictDeny, "")
	require.Empty(t, w.answers())
	w.wait(2 * time.Minute)
	require.Empty(t, w.answers())
	require.Len(t, w.outcomes.Drain(), 2)
}

func TestP11_AnAnswerForAnUnknownAgentIsIgnored(t *testing.T) {
	w := newCrewDriver(t)
	w.asks("r1", "npm test")
	w.decisions.Pipe("nobody", topics.GateDecision{
		GateID: "g", SessionID: "nobody", DecisionID: "d1", Verdict: topics.VerdictApprove, By: "ines", Via: "door",
	})
	// The outcome of a gate that no agent knows.
	w.inputs.Pipe("nobody", topics.CrewInput{
		InputID: "g/outcome", Kind: (crewbody.GateEnded{}).Kind(),
		Body: crewbody.Encode(crewbody.GateEnded{GateID: "g", Status: topics.GateApproved}),
	})
	w.crew(crewbody.GateEnded{GateID: "unknown", Status: topics.GateApproved})
	require.Empty(t, w.answers())
	require.Empty(t, w.outcomes.Drain())
	require.Len(t, w.view().Permissions, 1)
	_, known := w.agents.Get("nobody")
	require.False(t, known)
	w.wait(11 * time.Minute)
	require.Len(t, w.letters.Drain(), 1, "the group of gates gives the decision up")
}

// An approval for the session counts for the same command, and for no other. A dangerous request is asked each time, and its
// approval cannot count for more.
func TestP12_AlwaysAllowCountsForTheSameCommandOnly(t *testing.T) {
	for _, scope := range []topics.GateScope{topics.ScopeSession, topics.ScopeAgent} {
		t.Run(string(scope), func(t *testing.T) {
			w := newCrewDriver(t)
			w.decide(w.asks("r1", "npm test"), "d1", topics.VerdictApprove, scope)
			require.Equal(t, []string{"r1: once by ines"}, w.answers())
			w.asks("r2", "npm test")
			answers := w.answers()
			require.Len(t, answers, 1, "approved without a person")
			require.Contains(t, answers[0], "r2: once by ")
			w.asks("r3", "npm publish")
			require.Empty(t, w.answers(), "another command asks")

			dangerous := w.asks("r4", "rm -rf /opt")
			w.decide(dangerous, "d4", topics.VerdictApprove, scope)
			require.Empty(t, w.answers())
			require.Len(t, w.letters.Drain(), 1, "an approval of a dangerous request counts once")
			w.decide(dangerous, "d5", topics.VerdictApprove, "")
			require.Equal(t, []string{"r4: once by ines"}, w.answers())
			w.asks("r5", "rm -rf /opt")
			require.Empty(t, w.answers(), "a dangerous command asks again")
			require.True(t, w.view().Permissions[1].Dangerous)
		})
	}
}

func TestP09_ExitOrTerminateCancelsAllPendingAndNothingAnswersLater(t *testing.T) {
	for name, end := range map[string]func(*crewDriver){
		"exit":  func(w *crewDriver) { w.host(crewbody.Exited{Run: w.run, Code: 1}) },
		"crash": func(w *crewDriver) { w.host(crewbody.Exited{Run: w.run, Signal: "SIGKILL"}) },
		"terminate": func(w *crewDriver) {
			w.crew(crewbody.Terminate{Reason: "done"})
			require.ElementsMatch(w.t, []string{"r1:  by parent_ended", "r2:  by parent_ended", "r3:  by parent_ended"}, w.answers())
			w.host(crewbody.Exited{Run: w.run})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCrewDriver(t)
			var ids []string
			for _, id := range []string{"r1", "r2", "r3"} {
				ids = append(ids, w.asks(id, "npm "+id))
				w.wait(10 * time.Second)
			}
			require.Len(t, w.view().Permissions, 3)
			w.answers()
			end(w)
			require.Empty(t, w.answers(), "there is no process to answer")
			require.Empty(t, w.view().Permissions)
			var cancelled []string
			for _, o := range w.outcomes.Drain() {
				require.Equal(t, topics.GateCancelled, o.Value.Status)
				require.Equal(t, topics.CauseParentEnded, o.Value.Cause)
				cancelled = append(cancelled, o.Value.GateID)
			}
			require.ElementsMatch(t, ids, cancelled)

			w.decide(ids[0], "d1", topics.VerdictApprove, "")
			w.host(crewAsks(w.run, "r4", "npm r4"))
			w.Advance(2 * time.Minute)
			require.Empty(t, w.answers(), "no timer and no person answers later")
			require.Empty(t, w.outcomes.Drain())
		})
	}
}

func TestP10_CancellingTheSessionAnswersAllItsPendingRequestsWithCancelled(t *testing.T) {
	w := newCrewDriver(t)
	ids := map[string]string{}
	for _, id := range []string{"r1", "r2", "r3"} {
		ids[id] = w.asks(id, "npm "+id)
	}
	w.decide(ids["r2"], "d1", topics.VerdictApprove, "")
	require.Equal(t, []string{"r2: once by ines"}, w.answers())
	w.outcomes.Drain()

	w.crew(crewbody.Interrupt{})
	var answered []string
	cancels := 0
	for _, a := range w.actions.Drain() {
		switch a.Value.Kind {
		case crewbody.Cancel{}.Kind():
			require.Len(t, answered, 2, "the questions are answered before the session is cancelled")
			cancels++
		case crewbody.Answer{}.Kind():
			body, err := crewbody.Decode[crewbody.Answer](a.Value.Body)
			require.NoError(t, err)
			require.Empty(t, body.OptionID, "cancelled")
			answered = append(answered, body.RequestID)
		}
	}
	require.Equal(t, []string{"r1", "r3"}, answered)
	require.Equal(t, 1, cancels)
	require.Empty(t, w.view().Permissions)
	for _, o := range w.outcomes.Drain() {
		require.Equal(t, topics.GateCancelled, o.Value.Status)
	}
	w.asks("r4", "npm r4")
	require.Equal(t, []string{"r4:  by cancelled"}, w.answers(), "until the turn has ended")
	w.wait(2 * time.Minute)
	require.Empty(t, w.answers())
}

func TestP13_AutopilotDecidesTheNextRequestAndPendingOnesKeepWaiting(t *testing.T) {
	w := newCrewDriver(t)
	kept := w.asks("r1", "npm r1")
	w.asks("r2", "npm r2")
	w.wait(20 * time.Second)
	w.crew(crewbody.Autopilot{On: true})
	require.Empty(t, w.answers())
	require.Len(t, w.view().Permissions, 2)

	w.asks("r3", "npm r3")
	require.Equal(t, []string{"r3: once by autopilot"}, w.answers())
	w.asks("r4", "rm -rf /opt")
	require.Empty(t, w.answers(), "a dangerous request asks")
	require.Len(t, w.view().Permissions, 3)
	w.decide(kept, "d1", topics.VerdictApprove, "")
	require.Equal(t, []string{"r1: once by ines"}, w.answers())
	w.wait(39_999 * time.Millisecond)
	require.Empty(t, w.answers())
	w.wait(time.Millisecond)
	require.Equal(t, []string{"r2:  by deadline"}, w.answers(), "with its own deadline")
	w.wait(20 * time.Second)
	require.Equal(t, []string{"r4:  by deadline"}, w.answers())

	w.crew(crewbody.Autopilot{})
	w.asks("r5", "npm r5")
	require.Empty(t, w.answers())
}

// The end of the turn withdraws the gate; the withdrawal's outcome and a person who is late change nothing.
func TestAWithdrawnPermissionHasOneAnswerAndOneOutcome(t *testing.T) {
	w := newCrewDriver(t)
	id := w.asks("r1", "npm test")
	w.crew(crewbody.Interrupt{})
	require.Equal(t, []string{"r1:  by superseded"}, w.answers())
	w.decide(id, "d1", topics.VerdictApprove, "")
	w.wait(2 * time.Minute)
	require.Empty(t, w.answers())
	outcomes := w.outcomes.Drain()
	require.Len(t, outcomes, 1)
	require.Equal(t, topics.GateCancelled, outcomes[0].Value.Status)
}
