package peer

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/topics"
)

// cancelTask ends a task that no one wants any more, and tells the peer if it may have it.
func (t *transition) cancelTask(task *peerrow.Task) {
	if task.Phase == peerrow.Task_PENDING || task.Phase == peerrow.Task_ATTEMPT {
		t.cancelAttempt(task)
		t.askSettle(task, &peerrow.Outcome{Code: string(peerwire.CodeCancelled)})
	}
}

// turnEnded cancels the tasks of calls of a turn that has ended.
func (t *transition) turnEnded(e outputArrived) {
	turn := turnOf(e.ID)
	if turn == "" {
		return
	}
	for _, x := range slices.Clone(t.row.Tasks) { // to make room, tasks may be forgotten
		if isCall(x) && x.Agent == e.Agent && turnOf(x.CallId) == turn {
			t.cancelTask(x)
		}
	}
}

// cancelledTask cancels the tasks with an ID.
func (t *transition) cancelledTask(e commanded) {
	for _, x := range t.named(e.Command) {
		t.cancelTask(x)
	}
}

// leftTask handles a caller that no longer waits. A task without waiters is cancelled, unless it is detached.
func (t *transition) leftTask(e commanded) {
	for _, x := range t.named(e.Command) {
		i := slices.Index(x.Waiters, e.Command.Waiter)
		if i < 0 {
			continue
		}
		x.Waiters, t.changed = slices.Delete(x.Waiters, i, i+1), true
		if len(x.Waiters) == 0 && !x.Detached {
			t.cancelTask(x)
		}
	}
}

// askedTask says how a task is.
func (t *transition) askedTask(e commanded) {
	c := e.Command
	named := t.named(c)
	if len(named) == 0 {
		none := &peerrow.Task{Id: c.TaskID, PeerId: c.PeerID, Hash: c.Hash, RunId: taskRun(t.key, c.TaskID, c.PeerID, c.Hash)}
		t.reply(none, c.Waiter, topics.PeerUnknown, nil)
		return
	}
	if x := named[0]; isOpen(x) { // others with the ID were not accepted
		t.reply(x, c.Waiter, topics.PeerRunning, nil)
	} else {
		t.tellTask(x, c.Waiter)
	}
}

// named returns the tasks that a command of a door is about: those of commands with its ID, and with its hash if it has one.
func (t *transition) named(c topics.PeerCommand) (list []*peerrow.Task) {
	for _, x := range t.row.Tasks {
		if !isCall(x) && !isEarly(x) && x.Id == c.TaskID && x.PeerId == c.PeerID && (c.Hash == "" || x.Hash == c.Hash) {
			list = append(list, x)
		}
	}
	return list
}

// purgeTasks cancels the tasks of the session, except those of calls of other agents, and forgets how those ended that have
// ended. An end that was read before its call is forgotten when the call was answered with it: the call may have been answered
// with it before a crash.
func (t *transition) purgeTasks(agent string) {
	for _, x := range slices.Clone(t.row.Tasks) {
		if isCall(x) && x.Agent != agent {
			continue
		}
		t.changed = t.changed || !x.Purged
		x.Purged = true
		if t.cancelTask(x); !isOpen(x) && !isEarly(x) {
			x.Outcome = nil
		}
	}
}
