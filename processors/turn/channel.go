package turn

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// With Config.Channels the metadata of a message says where its output goes: to the origin of the message, or to the agent
// that delegated a task. What the turn needs of it is stored with the message and copied to the records of its turn: it is
// never looked up, so two users of one session cannot get each other's answers.
//
// The result of a delegation is a message like another, except that no one waits to send it again: it waits for its turn
// under every policy, beside the queue limit, and supersedes neither a turn nor gates.

const (
	maxPrompt = 16 << 10 // bytes of an ephemeral prompt
	maxTask   = 8 << 10  // bytes of a delegated task
	maxDepth  = 1 << 20  // delegations that led to a message; processors/delegation permits far fewer
)

// channelMember reports whether a member of a message's metadata is stored with the message, and not passed to the model. The
// note of a delegation's result stays: it marks the message in the history.
func channelMember(name string) bool {
	return name == topics.MetaOrigin || name == topics.MetaPrompt || name == topics.MetaTask
}

// keepChannel stores what the metadata of a message says about channels. What is invalid is not stored. wrong says what is
// invalid first, "" for nothing.
func keepChannel(a *turnrow.Accepted, metadata topics.Raw) (wrong string) {
	bad := func(name string) {
		if wrong == "" {
			wrong = "metadata." + name + " is invalid"
		}
	}
	if raw, ok := topics.Lookup(metadata, topics.MetaOrigin); ok {
		a.NoRoute = true
		if _, err := topics.DecodeOrigin(raw); err != nil {
			bad(topics.MetaOrigin)
		} else {
			a.Origin = bytes.Clone(raw)
		}
	}
	if raw, ok := topics.Lookup(metadata, topics.MetaTask); ok {
		a.NoRoute = true
		if t, err := topics.DecodeDelegationTask(raw); err != nil || len(raw) > maxTask || t.Depth > maxDepth {
			bad(topics.MetaTask)
		} else {
			a.Task, a.Depth = bytes.Clone(raw), t.Depth
		}
	}
	if raw, ok := topics.Lookup(metadata, topics.MetaResult); ok {
		a.NoRoute = true
		if n, err := topics.DecodeDelegationNote(raw); err != nil || n.Depth < 0 || n.Depth > maxDepth {
			bad(topics.MetaResult)
		} else {
			a.Result, a.Depth = true, max(a.Depth, n.Depth)
		}
	}
	if raw, ok := topics.Lookup(metadata, topics.MetaPrompt); ok && raw != nil {
		switch text := topics.TextOf(raw); {
		case jsontext.Value(raw).Kind() != '"':
			bad(topics.MetaPrompt)
		case len(*text) > maxPrompt:
			if wrong == "" {
				wrong = fmt.Sprintf("metadata.%s is longer than %d bytes", topics.MetaPrompt, maxPrompt)
			}
		case !blank(text):
			a.EphemeralPrompt = *text
		}
	}
	return wrong
}

// ownRoute returns the reply descriptor of an output that goes to the origin of its message or to the agent that delegated the
// task; nil if the message says neither.
func ownRoute(a *turnrow.Accepted) topics.Raw {
	switch {
	case len(a.Task) > 0:
		return topics.DelegationRoute(a.Task)
	case len(a.Origin) > 0:
		return topics.OriginRoute(a.Origin, nil)
	default:
		return nil
	}
}

// originOf returns the origin of a message, nil if it has none.
func originOf(a *turnrow.Accepted) topics.Raw {
	if len(a.GetOrigin()) == 0 {
		return nil
	}
	return a.Origin
}

// ofTurn returns a call's item with the origin and the depth of the open turn.
func (s *session) ofTurn(item topics.ToolUseItem) topics.ToolUseItem {
	a := s.row.Turn.Message
	item.Origin, item.Depth = originOf(a), a.Depth
	return item
}
