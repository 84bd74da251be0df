package agent

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// The outcomes of a turn beside the stop reasons that agents send.
const (
	outcomeCancelled = "cancelled" // by us, whatever the agent says
	outcomeError     = "error"     // the prompt failed
	outcomeExit      = "exit"      // the process ended
)

// stopRefusal is the stop reason of a turn that is not in the agent's context later.
const stopRefusal = "refusal"

// deliver begins a turn if something waits and the agent can take it.
func (a *agent) deliver() {
	p := a.Process
	if p == nil || !p.Ready || p.Stopping || a.Turn != nil || a.Paused {
		return
	}
	var blocks []jsontext.Value
	var sent *Queue
	first := a.FirstDue
	if first {
		a.FirstDue = false
		blocks = textBlock(a.FirstPrompt)
	} else if blocks, sent = a.merge(); blocks == nil {
		return
	}
	raw, err := json.Marshal(blocks)
	if err != nil {
		panic("crew: encode a prompt: " + err.Error())
	}
	id := a.step.NewID("prompt")
	a.Turn = &Turn{PromptId: id, SinceMs: a.step.NowMS(), Heard: a.heard(), First: first, Sent: sent}
	p.OutputMs, p.Hung = a.step.NowMS(), false
	a.busy()
	a.Phase = phaseRunning
	a.step.Redo(id, a.Member.Host, p.Epoch, crewbody.Send{
		AgentID: a.id(), Run: p.Run, PromptID: id, SessionID: a.SessionId, Blocks: raw,
	})
	a.step.Event("agent:response_start", about{a.id()})
	a.active()
}

// turnEnded is the answer to a prompt.
func (a *agent) turnEnded(c crewbody.TurnEnded) {
	a.heardOutput()
	if a.Turn == nil || a.Turn.PromptId != c.PromptID {
		return
	}
	a.StopReason = cut(c.StopReason, errorLimit)
	a.Outcome = a.StopReason
	switch {
	case a.Turn.Cancelled:
		a.Outcome = outcomeCancelled
	case c.Error != "":
		a.StopReason, a.Outcome = "", outcomeError
	}
	if c.Error != "" || c.StopReason == stopRefusal {
		a.Refreshed = "" // the agent's context does not have the prompt
	}
	a.happened(a.record().Spent(a.id(), c.Usage))
	a.asked().CancelAll(a.step, a.who(), topics.CauseParentEnded, true)
	a.happened(a.record().EndTurn(a.id()))
	a.Turn, a.Interrupted = nil, 0
	a.step.Event("agent:response_end", responseEnd{a.id(), a.Outcome, a.StopReason, cut(c.Error, errorLimit)})
	if a.Process.Stopping {
		return
	}
	a.rest(true)
	a.deliver()
}

// closeTurn ends the open turn with the process.
func (a *agent) closeTurn() {
	a.happened(a.record().EndTurn(a.id()))
	if a.Turn != nil {
		a.StopReason, a.Outcome = "", outcomeExit
		if a.Turn.Cancelled {
			a.Outcome = outcomeCancelled
		}
		a.Turn = nil
		a.step.Event("agent:response_end", responseEnd{AgentID: a.id(), Outcome: a.Outcome})
	}
	if a.Parser != nil {
		a.Parser.Drop() // a command that the end of the process has cut
	}
}

// interrupt cancels the turn. What waits stays; the text is the next prompt's urgent part. A turn that goes on is cancelled again by
// the next interrupt: agents that handle messages side by side may see a cancellation before its prompt, and lose it.
func (a *agent) interrupt(c crewbody.Interrupt) {
	if a.Turn != nil && !a.Process.Stopping {
		if !a.Turn.Cancelled {
			a.Turn.Cancelled = true
			a.asked().CancelAll(a.step, a.who(), topics.CauseSuperseded, true)
		}
		a.do(crewbody.Cancel{AgentID: a.id(), Run: a.Process.Run, PromptID: a.Turn.PromptId, SessionID: a.SessionId})
	}
	if c.Text != "" {
		a.prompt(crewbody.Prompt{Text: c.Text, Priority: true, FromID: c.FromID})
	}
}

// heardOutput remembers that the process is not silent.
func (a *agent) heardOutput() {
	a.Process.OutputMs, a.Process.Hung = a.step.NowMS(), false
	a.Turn.begin()
	a.active()
}

// active tells the repository that the agent works, now and then.
func (a *agent) active() {
	r := a.Member.Repository
	if r == "" || a.Turn == nil || a.step.NowMS() < a.ActiveMs+activeEvery.Milliseconds() {
		return
	}
	a.ActiveMs = a.step.NowMS()
	a.step.Send(mailbox.Repository(r), crewbody.AgentActive{Member: a.member()})
}

// permission is a question of the agent.
func (a *agent) permission(c crewbody.Permission) {
	a.heardOutput()
	if a.Process.Stopping || a.Turn.GetCancelled() {
		a.do(crewbody.Answer{AgentID: a.id(), Run: c.Run, RequestID: c.RequestID, By: "cancelled"})
		return
	}
	a.happened(a.record().Asked(a.id(), c.ToolCall))
	a.asked().Ask(a.step, a.who(), c, a.Autopilot)
}

// gateEnded is the answer to a question.
func (a *agent) gateEnded(c crewbody.GateEnded) {
	if a.Process == nil {
		return
	}
	a.asked().GateEnded(a.step, a.who(), c)
	a.Process.OutputMs = a.step.NowMS() // the agent was silent because it waited
}

func (a *agent) setAutopilot(c crewbody.Autopilot) {
	if a.Autopilot != c.On {
		a.Autopilot = c.On
		a.step.Event("agent:autopilot", autopilot{a.id(), c.On})
	}
}

// setTask sets what the agent works on. The output for another task begins.
func (a *agent) setTask(c crewbody.Task) {
	a.Task, a.Output = cut(c.Task, taskLimit), ""
}
