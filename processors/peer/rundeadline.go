package peer

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// runDeadlines adds the deadlines of the run.
func (t *transition) runDeadlines(add func(int64)) {
	if early := t.row.Early; early != nil {
		add(early.ExpiresMs)
	}
	run := t.row.Run
	switch {
	case run == nil:
	case run.Phase == peerrow.Run_ENDED:
		add(t.forgottenAt(run))
	case run.Phase == peerrow.Run_ENDING:
		add(run.DueMs)
	default:
		for _, at := range []int64{expiryOf(run), nextGate(run)} {
			if at != 0 {
				add(at)
			}
		}
	}
}

// forgottenAt returns when the same task ID is a new task.
func (t *transition) forgottenAt(run *peerrow.Run) int64 {
	return run.EndedMs + t.config.RememberFor.Milliseconds()
}

// runDue does what is due of the run.
func (t *transition) runDue() {
	if early := t.row.Early; early != nil && early.ExpiresMs <= t.nowMS() {
		t.row.Early, t.changed = nil, true
	}
	run := t.row.Run
	switch {
	case run == nil:
	case run.Phase == peerrow.Run_ENDED:
		if t.forgottenAt(run) <= t.nowMS() {
			t.row.Run, t.changed = nil, true
		}
	case run.Phase == peerrow.Run_ENDING:
		if run.DueMs <= t.nowMS() {
			t.writeEnd(run)
		}
	default:
		t.runningDue(run)
	}
}

// runningDue does what is due of a run that has not ended. If a gate and the deadline are both due, because the group did not run,
// what came first counts.
func (t *transition) runningDue(run *peerrow.Run) {
	gate, expiry := nextGate(run), expiryOf(run)
	switch {
	case expiry == 0 || expiry > t.nowMS() || gate != 0 && gate <= min(t.nowMS(), run.ExpiresMs):
		t.gatesDue(run)
	case slices.ContainsFunc(run.Gates, func(g *peerrow.Gate) bool { return g.Phase == peerrow.Gate_CLOSED }):
		t.reject(run)
	default:
		t.timeOut(run)
	}
}

func (t *transition) timeOut(run *peerrow.Run) {
	t.stop(run, fmt.Sprintf("timed out after %d ms", max(run.ExpiresMs-run.OpenedMs, 0)))
}

// stop cancels the turn of a run and ends the run with an error.
func (t *transition) stop(run *peerrow.Run, text string) {
	if run.Phase != peerrow.Run_RUNNING {
		return
	}
	t.cancelTurn(run, text)
	t.finish(run, failed(text))
}

func (t *transition) cancelTurn(run *peerrow.Run, reason string) {
	if agent, ok := t.agent(run.Agent); ok {
		machine.Emit(&t.Effects, agent.SessionControl, t.key, run.RunId+"/cancel", topics.Control{
			Action: topics.ActionCancel, RequestID: &run.RunId, Reason: &reason,
		})
	}
}

// purgeRun ends the run of a session that an agent has purged. The turn ends because of the purge.
func (t *transition) purgeRun(agent string) {
	if t.row.Early != nil {
		t.row.Early, t.changed = nil, true
	}
	if run := t.row.Run; run != nil && run.Agent == agent {
		t.finish(run, failed("session purged"))
		t.withdrawAll(run)
	}
}
