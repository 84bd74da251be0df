package agent

import (
	"fmt"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
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
			thinks := c.Event == transcript.EventThinking
			if a.works(thinks); !thinks {
				a.said(fields.Text)
			}
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
	a.Output = truncate.Last(a.Output+text, outputLimit)
	a.Preview = truncate.Last(a.Preview+text, previewLimit)
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

// Limits of texts in a row, in bytes of JSON.
const (
	firstLimit = 96 << 10
	taskLimit  = 64 << 10
	errorLimit = 4 << 10
	// nameLimit is that of IDs, and memberLimit of all that says who an agent is. Crews and hosts stay far below them.
	nameLimit   = 1 << 10
	memberLimit = 32 << 10
)

// Limits of what is kept of an agent's text, in characters.
const (
	outputLimit  = 16_000
	previewLimit = 4_000
)

// cut returns the beginning of a text that is at most limit bytes of JSON.
func cut(text string, limit int) string {
	size := 0
	for i, r := range text {
		if size += runeSize(r, utf8.RuneLen(r)); size > limit {
			return text[:i]
		}
	}
	return text
}

// jsonSize is at least the size of a text in JSON.
func jsonSize(text string) (size int) {
	for _, r := range text {
		size += runeSize(r, utf8.RuneLen(r))
	}
	return size
}

func runeSize(r rune, n int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\t' || r == '\r':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return 6
	}
	return n
}
