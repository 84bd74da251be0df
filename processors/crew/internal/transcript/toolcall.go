package transcript

import (
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// The statuses of a tool call, and what a call has that does not say.
const (
	pending     = "pending"
	inProgress  = "in_progress"
	failed      = "failed"
	defaultKind = "other"
)

// call begins a tool call, and replaces one that is known already, such as from a permission; or it changes one, and adds what an
// update of an unknown call says.
func (a applied) call(replace bool) []Change {
	if a.replay {
		return nil
	}
	return a.t.patch(a.agentID, a.update, replace)
}

// Asked applies the member toolCall of a session/request_permission: some agents send no tool_call before they ask.
func (t *Transcript) Asked(agentID string, toolCall topics.Raw) []Change {
	if !jsontext.Value(toolCall).IsValid() {
		return nil
	}
	return t.patch(agentID, toolCall, false)
}

// patch applies the members of an update that are neither absent nor null.
func (t *Transcript) patch(agentID string, update topics.Raw, replace bool) []Change {
	m := topics.LookupAll(update, "toolCallId", "title", "kind", "status", "content", "locations", "rawInput", "rawOutput")
	id := idOf(bridge.String(m[0]))
	if id == "" {
		return nil
	}
	c := t.find(id)
	if c == nil {
		c = &ToolCall{}
		t.Calls = append(t.Calls, c)
		replace = true
	}
	if replace {
		proto.Reset(c)
		c.Id, c.Kind, c.Status = id, defaultKind, pending
	}
	for _, member := range []struct {
		value topics.Raw
		field *string
		limit int
	}{{m[1], &c.Title, maxTitle}, {m[2], &c.Kind, maxName}, {m[3], &c.Status, maxName}} {
		if member.value != nil {
			*member.field = truncate.Within(bridge.String(member.value), member.limit)
		}
	}
	if v := m[4]; v != nil {
		c.Content = Flatten(v)
	}
	if v := m[5]; v != nil {
		c.Locations = first(bridge.Elements(v), maxField)
	}
	if v := m[6]; v != nil {
		c.RawInput = whole(v, maxField)
	}
	if v := m[7]; v != nil {
		c.RawOutput = whole(v, maxField)
	}
	t.bound(c)
	return []Change{{Event: EventToolCall, Fields: Call{AgentID: agentID, ToolCall: c.view()}}}
}

// find returns the tool call of the session with an ID. The newest calls are the ones that change.
func (t *Transcript) find(id string) *ToolCall {
	for i := len(t.Calls) - 1; i >= 0; i-- {
		if c := t.Calls[i]; c.Id == id && !c.Earlier {
			return c
		}
	}
	return nil
}

// bound drops the oldest closed calls, and if that is not enough the oldest ones, except the one that was just changed.
func (t *Transcript) bound(changed *ToolCall) {
	size := 0
	for _, c := range t.Calls {
		size += proto.Size(c)
	}
	for _, closed := range []bool{true, false} {
		if len(t.Calls) <= maxCalls && size <= maxCallBytes {
			return
		}
		kept := t.Calls[:0:0]
		count := len(t.Calls)
		for _, c := range t.Calls {
			if (count > maxCalls || size > maxCallBytes) && c != changed && (!closed || !c.open()) {
				count--
				size -= proto.Size(c)
				continue
			}
			kept = append(kept, c)
		}
		t.Calls = kept
	}
}

func (c *ToolCall) open() bool { return c.Status == pending || c.Status == inProgress }

// EndTurn closes the calls that are still open when a turn or the process ends. They are failed, because the agent did not
// say how they ended.
func (t *Transcript) EndTurn(agentID string) (changes []Change) {
	for _, c := range t.Calls {
		if c.open() {
			c.Status = failed
			changes = append(changes, Change{Event: EventToolCall, Fields: Call{AgentID: agentID, ToolCall: c.view()}})
		}
	}
	return changes
}

// ToolCalls returns the newest 50 tool calls, oldest first.
func (t *Transcript) ToolCalls() []view.ToolCall {
	const shown = 50
	var list []view.ToolCall
	for _, c := range t.GetCalls()[max(0, len(t.GetCalls())-shown):] {
		list = append(list, c.view())
	}
	return list
}

func (c *ToolCall) view() view.ToolCall {
	return view.ToolCall{
		ToolCallID: c.Id, Title: c.Title, Kind: c.Kind, Status: c.Status, Content: c.Content, Locations: c.Locations,
		RawInput: c.RawInput, RawOutput: c.RawOutput,
	}
}
