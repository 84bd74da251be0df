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
	known := commands[in.Name]
	switch {
	case known.leads && !m.Lead:
		w.refuse(o, "only a lead may do this")
	case w.talks(m, in.Name, cmd):
	case known.do == nil:
		w.refuse(o, "the command is not available")
	default:
		known.do(w, o, cmd)
	}
}

// commands are the commands of a crew, beside those of package talk.
var commands = map[string]executor{}

func init() {
	lead("CREATE_AGENT", (*work).createAgent)
	lead("DELEGATE", (*work).delegateTo)
	lead("TERMINATE_AGENT", (*work).terminateAgent)
	lead("CANCEL_DELEGATION", (*work).cancelDelegation)
	anyone("COMPLETE_TASK", (*work).completeTask)
	anyone("DECISION", (*work).decided)
	anyone("PROGRESS", (*work).progress)
	anyone("ACTIVITY", (*work).activity)
	lead("REQUEST_LIMIT_CHANGE", (*work).requestLimit)
	anyone("SET_TIMER", (*work).setTimer)
	anyone("CANCEL_TIMER", (*work).cancelTimer)
	anyone("LIST_TIMERS", (*work).listTimers)
	anyone("QUERY_CREW", func(w *work, o order, _ command.Nothing) { w.note(o.from, manifest.Roster(w.Roster, o.from)) })
	lead("HALT_HEARTBEAT", (*work).haltHeartbeat)
	lead("RESUME_HEARTBEAT", (*work).haltHeartbeat)
	lead("DECLARE_TASKS", func(w *work, o order, c command.DeclareTasks) { w.declare(o, c.Tasks...) })
	lead("ADD_TASK", func(w *work, o order, c command.Task) { w.declare(o, c) })
	for name, m := range moves {
		lead(name, func(w *work, o order, c command.TaskID) { w.move(o, c.TaskID, m) })
	}
	lead("CANCEL_TASK", (*work).cancelTask)
	anyone("ADD_DEPENDENCY", (*work).addDependency)
	lead("ASSIGN_TASK", (*work).assign)
	lead("REASSIGN_TASK", (*work).assign)
	anyone("TASK_STATUS", (*work).listTasks)
	anyone("QUERY_TASKS", (*work).listTasks)
	lead("RESET_DAG", (*work).resetTasks)
}

// executor executes a command. leads says that only leads may give it.
type executor struct {
	leads bool
	do    func(*work, order, any)
}

func anyone[C any](name string, do func(*work, order, C)) {
	commands[name] = executor{false, untyped(do)}
}

func lead[C any](name string, do func(*work, order, C)) { commands[name] = executor{true, untyped(do)} }

func untyped[C any](do func(*work, order, C)) func(*work, order, any) {
	return func(w *work, o order, cmd any) { do(w, o, cmd.(C)) }
}

// refuse answers a command that has no effect.
func (w *work) refuse(o order, why string, args ...any) {
	w.note(o.from, o.name+" error: "+fmt.Sprintf(why, args...)+".")
}

// answer answers a command that took effect, or that asks.
func (w *work) answer(o order, text string, args ...any) { w.note(o.from, fmt.Sprintf(text, args...)) }
