package updater

import (
	"errors"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/topics"
)

// Why a record of memoir-context-session-end is not a snapshot.
var (
	errUnreadable = errors.New("updater: record is not a snapshot of a session")
	errKeyless    = errors.New("updater: record has no key")
)

// read decodes a snapshot. Messages that cannot be read are left out: the others are worth remembering.
func (w *Worker) read(r processors.Inbound) (Ended, error) {
	in := w.topics.MemoirContextSessionEnd.Codec().Unmarshal(r.Value)
	switch {
	case in.Err != nil || in.Tombstone():
		return Ended{}, errUnreadable
	case len(r.Key) == 0:
		return Ended{}, errKeyless
	}
	s := in.Value
	e := Ended{
		Agent: w.topics.Agent, SessionID: textOf(s.SessionID), UserID: textOf(s.UserID), Memory: s.MemoirContext,
		Limit: w.rules.limit, Key: responder.KeyOf(r), Deadline: w.rules.Deadline(r),
	}
	elements, _ := topics.Elements(conversation(s)) // an error ends the list
	for _, element := range elements {
		if m, err := topics.DecodeMessage(element); err == nil {
			e.Messages = append(e.Messages, m)
		}
	}
	return e, nil
}

// conversation returns the messages of a session. FlightDeck's processing writes them to previous_messages, where its updater
// does not look; the group writes them to messages too, of which it leaves out more if the record would be too large.
func conversation(s topics.MemoirSnapshot) topics.Raw {
	if t := s.ThinkResponse; t != nil && t.PreviousMessages != nil {
		return topics.Splice(t.PreviousMessages, t.LastInputMessage, t.LastInputResponse)
	}
	return s.Messages
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
