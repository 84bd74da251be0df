package turn

import (
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// envelope is an upper bound of the size of a record without its large fields: field names, numbers, timestamps, the
// turntable.id header, the record's frame.
const envelope = 1024

// The sizeOf methods return upper bounds of a record's size on the wire, including key and headers.

func (s *session) sizeOfEnriched(m enriched) int {
	return envelope + 2*s.keySize() + len(m.History) + promptSize(m.EphemeralPrompt) +
		spellings(m.BothSpellings)*(len(m.LatestInput)+quoted(m.UserID)) + s.rules.memoryRoom(m.UserID, m.BothSpellings)
}

func (s *session) sizeOfOutput(o topics.Output, a *turnrow.Accepted) int {
	size := envelope + 2*s.keySize() + quoted(&o.Content) + quoted(&o.SourceAgent) + quoted(o.UserID) +
		quoted(a.RequestId)
	if a.NoRoute {
		return size + len(a.Origin) + len(a.Task)
	}
	if r := a.Route; r != nil {
		size += len(r.ReplyTo)
	}
	for _, r := range s.row.Routes {
		if sameRequest(r.RequestId, a.RequestId) {
			size += len(r.ReplyTo)
		}
	}
	return size
}

func (s *session) sizeOfItem(t topics.ToolUseItem) int {
	return envelope + s.keySize() + quoted(t.ToolUseID) + quoted(t.ToolID) + quoted(t.Name) + quoted(t.SessionID) +
		quoted(t.Timestamp) + quoted(&t.Invalid) + len(t.Input) + len(t.Origin)
}

// promptSize returns the size of an ephemeral prompt in a record for the model, at most.
func promptSize(prompt string) int {
	if prompt == "" {
		return 0
	}
	return quoted(&prompt)
}

func (s *session) keySize() int { return quoted(&s.key) }

// quoted returns the size of a text in JSON, at most.
func quoted(text *string) int {
	if text == nil {
		return len("null")
	}
	return quotedBytes(*text)
}

// quotedBytes returns the size of UTF-8 text in JSON, at most.
func quotedBytes[T string | topics.Raw](text T) int {
	size := 2
	for i := range len(text) {
		switch b := text[i]; {
		case b < ' ':
			size += len(`\u0000`)
		case b == '"', b == '\\':
			size += 2
		default:
			size++
		}
	}
	return size
}

// memoryRoom returns how many bytes of a record for the model are kept for the memory of its user and for the record's key. A
// memory with many characters that JSON escapes can be longer: the group that adds it shortens it.
func (r *rules) memoryRoom(user *string, both bool) int {
	if r.Memoir == nil {
		return 0
	}
	return quoted(user) + spellings(both)*(r.Memoir.ContextBytes+r.Memoir.ContextBytes/8)
}
