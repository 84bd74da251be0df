package team

import (
	"fmt"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// work is the application of one input to a row.
type work struct {
	*State
	step   *mailbox.Step
	config Config
	id     string // of the crew
	from   string // sender of the input
}

// apply is the transition of a crew. Whatever is due at the time of the step is done before the input, so that it does not
// matter when crewbody.Due is read.
func (c Config) apply(s *State, in topics.CrewInput, step *mailbox.Step) (deadlineMS int64, keep bool) {
	w := &work{State: s, step: step, config: c, id: mailbox.ID(step.Subject), from: in.From}
	step.CrewID, step.ProjectID = w.id, s.Roster.ProjectId
	told := w.toldTasks()
	w.due()
	handlers.Handle(step, w, in, "a crew has no use for an input of this kind", "the body of the input is invalid: it has no effect")
	w.noteSent()
	w.forget()
	w.nudge()
	w.shed()
	w.tellTasks(told)
	if w.Refresh.DeadlineMS() != 0 { // else the news are of no use
		w.Refresh.Due(step, s.Roster, w.news())
	}
	return w.deadline(), s.Settings.Configured || len(s.Roster.Members) > 0
}

// handlers apply inputs.
var handlers = mailbox.Handlers[*work]{}

func init() {
	mailbox.On(handlers, func(*work, crewbody.Due) {})
	mailbox.On(handlers, (*work).configure)
	mailbox.On(handlers, (*work).spawnAsked)
	mailbox.On(handlers, (*work).terminateAsked)
	mailbox.On(handlers, (*work).restartAsked)
	mailbox.On(handlers, (*work).pause)
	onAgent((*work).restartDue, func(in crewbody.RestartDue) string { return in.AgentID })
	onAgent((*work).changed, func(in crewbody.AgentChanged) string { return in.AgentID })
	onAgent((*work).exited, func(in crewbody.AgentExited) string { return in.AgentID })
	onAgent((*work).idle, func(in crewbody.AgentIdle) string { return in.AgentID })
	onAgent(func(w *work, _ *roster.Member, in crewbody.Dropped) { w.Talk.Dropped(w.step, w.Roster, in) },
		func(in crewbody.Dropped) string { return in.AgentID })
	onAgent(func(w *work, m *roster.Member, _ crewbody.Compacted) { w.Refresh.Trigger(w.step, m.Id) }, // its context may have lost it
		func(in crewbody.Compacted) string { return in.AgentID })
	mailbox.On(handlers, (*work).decide)
	mailbox.On(handlers, (*work).queueHeld)
	mailbox.On(handlers, func(w *work, in crewbody.Say) { w.Talk.Say(w.step, w.Roster, in) })
	mailbox.On(handlers, func(w *work, in crewbody.GroupSay) { w.Talk.GroupSay(w.step, w.Roster, in) })
	onAgent((*work).command, func(in crewbody.Command) string { return in.Member.AgentID })
	mailbox.On(handlers, (*work).lockChanged)
	mailbox.On(handlers, (*work).committed)
}

// onAgent adds the handler of an input that an agent writes about itself. One of an agent that is not in the crew has no effect.
func onAgent[T crewbody.Body](do func(*work, *roster.Member, T), agent func(T) string) {
	mailbox.On(handlers, func(w *work, body T) {
		m := w.Roster.Find(agent(body))
		if m != nil && (w.from == "" || w.from == mailbox.Agent(m.Id)) {
			do(w, m, body)
		}
	})
}

// send sends an input to an agent.
func (w *work) send(agentID string, body crewbody.Body) { w.step.Send(mailbox.Agent(agentID), body) }

// note answers a command of an agent.
func (w *work) note(m *roster.Member, text string) {
	w.send(m.Id, crewbody.Note{Text: "[System] " + text})
}

// noteSent remembers the last note of each agent among the effects of the step.
func (w *work) noteSent() {
	for _, e := range w.step.Effects {
		mail, ok := e.(mailbox.Mail)
		if !ok || mail.Input.Kind != noteKind {
			continue
		}
		if m := w.Roster.Find(mailbox.ID(mail.To)); m != nil {
			w.duty(m).Noted = mail.Input.Number
		}
	}
}

var noteKind = crewbody.Note{}.Kind()

func (w *work) now() int64 { return w.step.NowMS() }

// due does what is due at the time of the step, whatever its input is.
func (w *work) due() {
	w.expireHolds()
	w.confirmDue()
	w.lost()
	w.fireTimers()
	w.forget()
}

// deadline is when something is due next, 0 if nothing is.
func (w *work) deadline() (next int64) {
	for _, h := range w.Holds {
		next = mailbox.Earlier(next, h.UntilMs)
	}
	for _, d := range w.Decisions {
		if d.Status == Recorded && len(w.Holds) == 0 {
			next = mailbox.Earlier(next, d.ConfirmMs)
		}
	}
	for _, m := range w.Roster.Members {
		switch {
		case !view.Ended(m.Status):
		case w.working(m):
			next = mailbox.Earlier(next, m.EndedMs+lostAfter.Milliseconds())
		default:
			next = mailbox.Earlier(next, m.EndedMs+forgetAfter.Milliseconds())
		}
	}
	for _, d := range w.Duties {
		next = mailbox.Earlier(next, d.NudgeMs)
	}
	for _, t := range w.Timers {
		next = mailbox.Earlier(next, t.DueMs)
	}
	return mailbox.Earlier(next, w.Refresh.DeadlineMS())
}

// configure sets where the agents that are spawned from now on work.
func (w *work) configure(in crewbody.Configure) {
	switch {
	case in.Host == "" || in.Cwd == "":
		w.problem("A crew needs a host and a directory.")
		return
	case len(in.Host) > maxID || len(in.Cwd) > maxPath || len(in.Repository) > maxID || len(in.ProjectID) > maxID ||
		len(in.ProjectName) > maxName:
		w.problem("A setting of the crew is too long.")
		return
	}
	w.Settings.Configured = true
	w.Settings.Host, w.Settings.Cwd, w.Settings.Repository = in.Host, in.Cwd, in.Repository
	w.Roster.ProjectId, w.Roster.ProjectName = in.ProjectID, in.ProjectName
	w.step.ProjectID = in.ProjectID
	w.step.Event("crew:configured", map[string]any{
		"projectName": in.ProjectName, "host": in.Host, "cwd": in.Cwd, "repository": in.Repository,
	})
}

// problem tells people about an input that has no effect.
func (w *work) problem(message string) {
	w.step.Event("error", map[string]any{"message": message})
}

// pause holds back what waits for the crew's agents, or releases it.
func (w *work) pause(in crewbody.SystemPaused) {
	if w.Settings.Paused == in.Paused {
		return
	}
	w.Settings.Paused = in.Paused
	for _, m := range w.unended() {
		w.send(m.Id, crewbody.Pause{Paused: in.Paused})
	}
	w.step.Event("system:paused", map[string]any{"paused": in.Paused})
}

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
	text := ""
	switch {
	case known.leads && !m.Lead:
		text = o.refused("only a lead may do this")
	case w.talks(m, in.Name, cmd):
	case known.do == nil:
		text = o.refused("the command is not available")
	default:
		text = known.do(w, o, cmd)
	}
	if text != "" {
		w.note(m, text)
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
	anyone("QUERY_CREW", func(w *work, o order, _ command.Nothing) string { return manifest.Roster(w.Roster, o.from) })
	lead("HALT_HEARTBEAT", (*work).haltHeartbeat)
	lead("RESUME_HEARTBEAT", (*work).haltHeartbeat)
	lead("DECLARE_TASKS", func(w *work, o order, c command.DeclareTasks) string { return w.declare(o, c.Tasks...) })
	lead("ADD_TASK", func(w *work, o order, c command.Task) string { return w.declare(o, c) })
	for name, m := range moves {
		lead(name, func(w *work, o order, c command.TaskID) string { return w.move(o, c.TaskID, m) })
	}
	lead("CANCEL_TASK", (*work).cancelTask)
	anyone("ADD_DEPENDENCY", (*work).addDependency)
	lead("ASSIGN_TASK", (*work).assign)
	lead("REASSIGN_TASK", (*work).assign)
	anyone("TASK_STATUS", (*work).listTasks)
	anyone("QUERY_TASKS", (*work).listTasks)
	lead("RESET_DAG", (*work).resetTasks)
}

// executor executes a command, and returns the note that answers it, empty if none is left to be sent. leads says that only leads may
// give it.
type executor struct {
	leads bool
	do    func(*work, order, any) string
}

func anyone[C any](name string, do func(*work, order, C) string) {
	commands[name] = executor{false, untyped(do)}
}

func lead[C any](name string, do func(*work, order, C) string) {
	commands[name] = executor{true, untyped(do)}
}

func untyped[C any](do func(*work, order, C) string) func(*work, order, any) string {
	return func(w *work, o order, cmd any) string { return do(w, o, cmd.(C)) }
}

// refused is the answer to a command that has no effect.
func (o order) refused(why string, args ...any) string {
	return o.name + " error: " + fmt.Sprintf(why, args...) + "."
}
