package agent

import (
	"fmt"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/transcript"
)

// updates applies what the process says. What it repeats of a session that it continues is no news.
func (a *agent) updates(c crewbody.Updates) {
	a.heardOutput()
	if a.Process.Ready && c.SessionID != a.SessionId {
		return
	}
	a.happened(a.record().ApplyAll(a.id(), c.Updates, c.Replay || !a.Process.Ready))
}

// record is the transcript.
func (a *agent) record() *transcript.Transcript {
	if a.Transcript == nil {
		a.Transcript = &transcript.Transcript{}
	}
	return a.Transcript
}

// happened writes the events of changes, and reads the commands in the agent's text.
func (a *agent) happened(changes []transcript.Change) {
	for _, c := range changes {
		a.step.Event(c.Event, c.Fields)
		switch fields := c.Fields.(type) {
		case transcript.Compacted:
			a.Refreshed = "" // the CREW_UPDATE may be lost with the context
			a.step.Send(a.crew(), crewbody.Compacted{
				AgentID: a.id(), Previous: fields.PreviousUsed, Current: fields.CurrentUsed,
			})
		case transcript.Text:
			a.works(c.Event == transcript.EventThinking)
			a.said(c.Text)
		case transcript.Content, transcript.Call:
			a.works(false)
		}
	}
}

// works sets the phase of an agent whose turn is open.
func (a *agent) works(thinks bool) {
	switch {
	case a.Turn == nil || a.Process.Stopping:
	case thinks:
		a.Phase = phaseThinking
	default:
		a.Phase = phaseRunning
	}
}

// said reads text of the agent.
func (a *agent) said(text string) {
	if text == "" {
		return
	}
	a.Output = tail(a.Output+text, outputLimit)
	a.Preview = tail(a.Preview+text, previewLimit)
	if a.Parser == nil {
		a.Parser = &command.Parser{}
	}
	for _, item := range a.Parser.Write(text) {
		if item.Problem != "" {
			a.addNote(item.Problem)
		} else {
			a.command(item)
		}
	}
	a.deliver()
}

// command sends a command to the row that carries it out.
func (a *agent) command(item command.Item) {
	to := a.crew()
	if command.For(item.Name) == command.TargetRepository {
		if a.Member.Repository == "" {
			a.addNote(fmt.Sprintf("%s error: you have no repository.", item.Name))
			return
		}
		to = mailbox.Repository(a.Member.Repository)
	}
	a.await(item)
	a.step.SendAs(a.commandID(item.Offset), to, crewbody.Command{
		Member: a.member(), SessionID: a.SessionId, Offset: item.Offset, Name: item.Name, Payload: item.Payload,
		Heard: a.knew(),
	})
}

// cutText forgets a command that the end of the process has cut.
func (a *agent) cutText() {
	if a.Parser != nil {
		a.Parser.Drop()
	}
}
