package acp

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// replies maps the kinds of permission options to the replies of an approval request.
var replies = map[string]string{
	"allow_once": "once", "allow_always": "always", "reject_once": "reject", "reject_always": "reject",
}

// Permission translates the params of session/request_permission into an approval request. id is the request's id; if it
// is empty, the tool call's id is used. It fails as Update does.
func (b *Bridge) Permission(id string, params topics.Raw) ([]folder.Event, error) {
	if !valid(params) {
		return nil, folder.ErrSyntax
	}
	call := bridge.Get(params, "toolCall")
	callID := bridge.Get(call, "toolCallId")
	if id == "" {
		id = bridge.String(callID)
	}
	var available []string
	for _, option := range bridge.Elements(bridge.Get(params, "options")) {
		if reply := replies[bridge.String(bridge.Get(option, "kind"))]; reply != "" && !slices.Contains(available, reply) {
			available = append(available, reply)
		}
	}
	list := []byte{'['}
	for i, reply := range available {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, bridge.Text(reply)...)
	}
	if known := bridge.String(callID); b.turn.Calls(known) > 0 {
		callID = bridge.Text(b.turn.EventID(known))
	}
	payload := bridge.Fields{}.Value("toolCallId", callID).Value("toolCall", call).
		Value("availableReplies", append(list, ']')).Value("options", bridge.Get(params, "options"))
	b.turn.Close()
	b.turn.Emit("interaction_request",
		bridge.Fields{}.Text("id", id).Text("kind", "user_approval").Value("payload", payload.Object()))
	return b.turn.Take()
}

// Decision adds the user's answer to an approval request.
func (b *Bridge) Decision(id, toolCallID string, approved bool) ([]folder.Event, error) {
	payload := bridge.Fields{}.Flag("approved", approved).Text("toolCallId", b.turn.EventID(toolCallID))
	b.turn.Emit("interaction_response",
		bridge.Fields{}.Text("id", id).Text("kind", "user_approval").Value("payload", payload.Object()))
	return b.turn.Take()
}
