package team

import (
	"fmt"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// order is a command that is being executed.
type order struct {
	name string
	// from is the agent that wrote it.
	from *roster.Member
	// heard is the number of the last input of the crew that the agent had heard of when it wrote the command, 0 if unknown.
	heard int64
}

// command executes a command in an agent's text. One of an agent that has ended has no effect.
func (w *work) command(m *roster.Member, in crewbody.Command) {
	if view.Ended(m.Status) || w.duty(m).Terminating {
		return
	}
	w.step.Answering = true
	defer func() { w.step.Answering = false }()
	cmd, err := command.Decode(in.Name, in.Payload)
	if err != nil {
		w.note(m, err.Error())
		return
	}
	o := order{name: in.Name, from: m, heard: in.Heard}
	switch {
	case leads(cmd) && !m.Lead:
		w.refuse(o, "only a lead may do this")
	case w.talks(m, cmd):
	default:
		w.execute(o, cmd)
	}
}

// leads reports whether only leads may give a command.
func leads(cmd any) bool {
	switch cmd.(type) {
	case command.CreateAgent, command.Delegate, command.TerminateAgent, command.CancelDelegation, command.DeclareTasks,
		command.AddTask, command.PauseTask, command.ResumeTask, command.RetryTask, command.ReopenTask, command.SkipTask,
		command.CancelTask, command.ForceReady, command.AssignTask, command.ReassignTask, command.ResetDag,
		command.RequestLimitChange, command.HaltHeartbeat, command.ResumeHeartbeat:
		return true
	}
	return false
}

// execute executes a command that the agent may give.
func (w *work) execute(o order, cmd any) {
	switch c := cmd.(type) {
	case command.CreateAgent:
		w.createAgent(o, c)
	case command.Delegate:
		w.delegateTo(o, c)
	case command.TerminateAgent:
		w.terminateAgent(o, c)
	case command.CancelDelegation:
		w.cancelDelegation(o, c)
	case command.CompleteTask:
		w.completeTask(o, c)
	case command.Decision:
		w.decided(o, c)
	case command.Progress:
		w.progress(o, c)
	case command.Activity:
		w.activity(o, c)
	case command.RequestLimitChange:
		w.requestLimit(o, c)
	case command.SetTimer:
		w.setTimer(o, c)
	case command.CancelTimer:
		w.cancelTimer(o, c)
	case command.ListTimers:
		w.listTimers(o)
	case command.QueryCrew:
		w.note(o.from, manifest.Roster(w.Roster, o.from))
	case command.HaltHeartbeat:
		w.haltHeartbeat(o, true)
	case command.ResumeHeartbeat:
		w.haltHeartbeat(o, false)
	default:
		w.executeTasks(o, cmd)
	}
}

// executeTasks executes a command about tasks.
func (w *work) executeTasks(o order, cmd any) {
	switch c := cmd.(type) {
	case command.DeclareTasks:
		w.declare(o, c.Tasks)
	case command.AddTask:
		w.declare(o, []command.Task{command.Task(c)})
	case command.PauseTask:
		w.move(o, c.TaskID, pausing)
	case command.ResumeTask:
		w.move(o, c.TaskID, resuming)
	case command.RetryTask:
		w.move(o, c.TaskID, retrying)
	case command.ReopenTask:
		w.move(o, c.TaskID, reopening)
	case command.SkipTask:
		w.move(o, c.TaskID, skipping)
	case command.ForceReady:
		w.move(o, c.TaskID, forcing)
	case command.CancelTask:
		w.cancelTask(o, c.TaskID)
	case command.AddDependency:
		w.addDependency(o, c)
	case command.AssignTask:
		w.assign(o, c.TaskID, c.AgentID, false)
	case command.ReassignTask:
		w.assign(o, c.TaskID, c.AgentID, true)
	case command.TaskStatus, command.QueryTasks:
		w.listTasks(o)
	case command.ResetDag:
		w.resetTasks(o)
	default:
		w.refuse(o, "the command is not available")
	}
}

// refuse answers a command that has no effect.
func (w *work) refuse(o order, why string, args ...any) {
	w.note(o.from, o.name+" error: "+fmt.Sprintf(why, args...)+".")
}

// answer answers a command that took effect, or that asks.
func (w *work) answer(o order, text string, args ...any) { w.note(o.from, fmt.Sprintf(text, args...)) }
