package team

import (
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/topics"
)

// work is the application of one input to a row.
type work struct {
	*State
	step   *mailbox.Step
	config Config
	id     string // of the crew
}

// apply is the transition of a crew. Whatever is due at the time of the step is done before the input, so that it does not
// matter when crewbody.Due is read.
func (c Config) apply(s *State, in topics.CrewInput, step *mailbox.Step) (deadlineMS int64, keep bool) {
	w := &work{State: s, step: step, config: c, id: mailbox.ID(step.Subject)}
	step.CrewID, step.ProjectID = w.id, s.Roster.ProjectId
	told := w.toldTasks()
	w.due()
	if handle, ok := handlers[in.Kind]; ok {
		handle(w, in)
	} else {
		step.DeadLetter("a crew has no use for an input of this kind")
	}
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

const reasonBody = "the body of the input is invalid: it has no effect"

// handlers are the effects of inputs by their kinds.
var handlers = map[string]func(*work, topics.CrewInput){}

func init() {
	on(func(*work, crewbody.Due) {})
	on((*work).configure)
	on((*work).spawnAsked)
	on((*work).terminateAsked)
	on((*work).restartAsked)
	on((*work).pause)
	onAgent((*work).restartDue, func(in crewbody.RestartDue) string { return in.AgentID })
	onAgent((*work).changed, func(in crewbody.AgentChanged) string { return in.AgentID })
	onAgent((*work).exited, func(in crewbody.AgentExited) string { return in.AgentID })
	onAgent((*work).idle, func(in crewbody.AgentIdle) string { return in.AgentID })
	onAgent((*work).dropped, func(in crewbody.Dropped) string { return in.AgentID })
	onAgent((*work).compacted, func(in crewbody.Compacted) string { return in.AgentID })
	on((*work).decide)
	on((*work).queueHeld)
	on((*work).said)
	on((*work).saidToGroup)
	onAgent((*work).command, func(in crewbody.Command) string { return in.Member.AgentID })
	on((*work).lockChanged)
	on((*work).committed)
}

// on registers the effect of one kind of input.
func on[T crewbody.Body](effect func(*work, T)) {
	var none T
	handlers[none.Kind()] = func(w *work, in topics.CrewInput) {
		body, err := crewbody.Decode[T](in.Body)
		if err != nil {
			w.step.DeadLetter(reasonBody)
			return
		}
		effect(w, body)
	}
}

// onAgent registers the effect of an input that an agent writes about itself. One of an agent that is not in the crew has no
// effect.
func onAgent[T crewbody.Body](effect func(*work, *roster.Member, T), agent func(T) string) {
	var none T
	handlers[none.Kind()] = func(w *work, in topics.CrewInput) {
		body, err := crewbody.Decode[T](in.Body)
		if err != nil {
			w.step.DeadLetter(reasonBody)
			return
		}
		m := w.Roster.Find(agent(body))
		if m == nil || in.From != "" && in.From != mailbox.Agent(m.Id) {
			return
		}
		effect(w, m, body)
	}
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
