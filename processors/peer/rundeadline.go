package peer

import (
	"fmt"

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
	case run.Phase == Run_ENDED:
		add(t.forgottenAt(run))
	case run.Phase == Run_ENDING:
		add(run.DueMs)
	default:
		add(run.ExpiresMs)
		if g := run.openGate(); g != nil {
			add(g.OpenMs)
		}
	}
}

// forgottenAt returns when the same task ID is a new task.
func (t *transition) forgottenAt(run *Run) int64 {
	return run.EndedMs + t.rules.RememberFor.Milliseconds()
}

// runDue does what is due of the run.
func (t *transition) runDue() {
	if early := t.row.Early; early != nil && early.ExpiresMs <= t.nowMS() {
		t.row.Early, t.changed = nil, true
	}
	run := t.row.Run
	switch {
	case run == nil:
	case run.Phase == Run_ENDED:
		if t.forgottenAt(run) <= t.nowMS() {
			t.row.Run, t.changed = nil, true
		}
	case run.Phase == Run_ENDING:
		if run.DueMs <= t.nowMS() {
			t.writeEnd(run)
		}
	default:
		// If both are due, because the group did not run, what came first counts.
		if g := run.openGate(); g != nil && g.OpenMs <= min(t.nowMS(), run.ExpiresMs) {
			t.reject(run, g)
		} else if run.ExpiresMs <= t.nowMS() {
			t.timeOut(run)
		}
	}
}

func (t *transition) timeOut(run *Run) {
	t.stop(run, fmt.Sprintf("timed out after %d ms", max(run.ExpiresMs-run.OpenedMs, 0)))
}

// stop cancels the turn of a run and ends the run with an error.
func (t *transition) stop(run *Run, text string) {
	if run.Phase != Run_RUNNING {
		return
	}
	t.emit(run.RunId+"/cancel", TurnCancelled{
		Agent: run.Agent, Control: topics.Control{Action: topics.ActionCancel, RequestID: &run.RunId, Reason: &text},
	})
	t.finish(run, failed(text))
}

// purgeRun ends the run of a session that is purged. The turn ends because of the purge.
func (t *transition) purgeRun(r *Record) {
	if t.row.Early != nil {
		t.row.Early, t.changed = nil, true
	}
	if run := t.row.Run; run != nil && run.Agent == r.Agent {
		t.finish(run, failed("session purged"))
	}
}
