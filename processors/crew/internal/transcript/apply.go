package transcript

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// applied is the application of one update.
type applied struct {
	t       *Transcript
	agentID string
	update  topics.Raw
	replay  bool
}

// kinds are the kinds of session/update in version 1 of ACP.
var kinds = map[string]func(applied) []Change{
	"user_message_chunk":        func(applied) []Change { return nil }, // it repeats a prompt
	"agent_message_chunk":       applied.message,
	"agent_thought_chunk":       applied.thought,
	"tool_call":                 applied.call,
	"tool_call_update":          applied.callUpdate,
	"plan":                      applied.plan,
	"available_commands_update": applied.commands,
	"current_mode_update":       applied.mode,
	"config_option_update":      applied.options,
	"session_info_update":       applied.info,
	"usage_update":              applied.usage,
}

// Apply applies the member update of a session/update notification and returns its events. An update that is a replay of the
// past has no events and no text; only what is the state of the session counts: plan, usage, modes, commands, options, title.
// An update of an unknown kind is returned as it is. Bytes that are not valid JSON are ignored.
func (t *Transcript) Apply(agentID string, update topics.Raw, replay bool) []Change {
	if !jsontext.Value(update).IsValid() {
		return nil
	}
	a := applied{t: t, agentID: agentID, update: update, replay: replay}
	apply, known := kinds[bridge.String(bridge.Get(update, "sessionUpdate"))]
	if !known {
		apply = applied.raw
	}
	changes := apply(a)
	if replay {
		return nil
	}
	return changes
}

// ApplyAll applies updates in their order. Consecutive chunks of a message are one event, and so are updates of a tool call
// that follow each other without a change of its status.
func (t *Transcript) ApplyAll(agentID string, updates []topics.Raw, replay bool) (all []Change) {
	for _, update := range updates {
		for _, c := range t.Apply(agentID, update, replay) {
			if len(all) == 0 || !merge(&all[len(all)-1], c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// merge merges a change into the one before it, if they are one event.
func merge(last *Change, next Change) bool {
	if last.Event != next.Event {
		return false
	}
	switch fields := last.Fields.(type) {
	case Text:
		more := next.Fields.(Text)
		if more.MessageID != fields.MessageID {
			return false
		}
		fields.Text += more.Text
		last.Fields, last.Text = fields, last.Text+next.Text
		return true
	case Call:
		more := next.Fields.(Call)
		if more.ToolCall.ToolCallID != fields.ToolCall.ToolCallID || more.ToolCall.Status != fields.ToolCall.Status {
			return false
		}
		last.Fields = more
		return true
	}
	return false
}

func (a applied) raw() []Change {
	return []Change{{Event: EventUpdate, Fields: Update{AgentID: a.agentID, Update: a.update}}}
}

// get returns a member of the update, nil if it is absent or null.
func (a applied) get(name string) topics.Raw { return bridge.Get(a.update, name) }
