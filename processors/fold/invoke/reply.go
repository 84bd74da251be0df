package invoke

import (
	"net/http"

	"github.com/turntable-streams/turntable/topics"
)

// reply is a client's answer to an interaction: the result of a tool call in the last messages of a request. It is not
// trusted: which call it decides, and with which arguments, is what the turn has stored.
type reply struct {
	token    string     // interactionToken; empty for none
	call     string     // ID of the tool call; empty for none
	tool     string     // name of the tool; empty if unknown
	args     topics.Raw // the call's arguments in the client's history; nil if unknown
	decides  bool       // it has the form {approved, interactionToken}
	approved bool
	reason   string
	digest   string     // argsSha256: of the arguments that the client has read elsewhere; empty for none
	value    topics.Raw // the whole output
}

const (
	// maxReplies is the maximum number of answers in a request.
	maxReplies = 256
	// maxReason is the maximum length of a decision's reason, in bytes.
	maxReason = 4 << 10
)

func badReply(text string) *Error {
	return &Error{Status: http.StatusUnprocessableEntity, Type: TypeUnknown, Code: "invalid_answer", Text: text}
}

// repliesOf returns the answers in a request's canonical messages: those of the last message, and of the messages before it
// that contain nothing else. It returns none for a request whose last message has none. It fails for an answer that neither
// approves nor denies, and for one beside a user's text, which would be lost.
func repliesOf(messages []topics.Raw) ([]reply, error) {
	var list []reply
	for i := len(messages) - 1; i >= 0; i-- {
		found, only, err := repliesIn(messages[i])
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0, i < len(messages)-1 && !only:
			return namedBy(messages, list), nil
		case len(list)+len(found) > maxReplies:
			return nil, badReply("data.inputs.messages: too many answers")
		}
		if list = append(found, list...); !only {
			break
		}
	}
	return namedBy(messages, list), nil
}

// repliesIn returns the answers in a message; only reports whether it contains nothing else.
func repliesIn(message topics.Raw) (list []reply, only bool, err error) {
	role, _ := text(member(message, "role"))
	if id, ok := field(message, "tool_call_id"); ok && role == "tool" { // a message in the form of a batch
		output, ok := field(message, "content")
		if _, called := field(message, "tool_name"); called || !ok {
			return nil, false, nil
		}
		r, err := replyOf(id, member(message, "tool_name"), output)
		return []reply{r}, true, err
	}
	only, decides, said := true, false, false
	for _, b := range elementsOf(member(message, "content")) {
		switch kind, _ := text(member(b, "type")); kind {
		case "tool_result":
			output, ok := field(b, "output")
			if !ok {
				continue
			}
			r, err := replyOf(member(b, "toolCallId"), member(b, "toolName"), output)
			if err != nil {
				return nil, false, err
			}
			list, decides = append(list, r), decides || r.decides
		case "tool_call":
		default:
			only, said = false, said || role == "user"
		}
	}
	if decides && said {
		return nil, false, badReply("data.inputs.messages: the last message has an answer and other content; send them one after the other")
	}
	return list, only, nil
}

// replyOf returns the answer in a tool's result.
func replyOf(call, tool, output topics.Raw) (reply, error) {
	r := reply{call: idTextOf(call), tool: textOf(tool), value: output}
	if kindOf(output) != '{' {
		return r, nil
	}
	r.token = idTextOf(member(output, "interactionToken"))
	approved, there := field(output, "approved")
	decision := there && eachMember(output, func(name string, _ topics.Raw) bool {
		return name == "approved" || name == "interactionToken" || name == "reason" || name == "argsSha256"
	})
	if !decision {
		return r, nil
	}
	if kind := kindOf(approved); kind != 't' && kind != 'f' {
		return reply{}, badReply("data.inputs.messages: approved: want true or false")
	}
	r.decides, r.approved = true, kindOf(approved) == 't'
	r.reason, _ = text(member(output, "reason"))
	r.digest, _ = text(member(output, "argsSha256"))
	if len(r.reason) > maxReason {
		return reply{}, badReply("data.inputs.messages: the reason of an answer is too long")
	}
	return r, nil
}

// idTextOf returns an ID as text, as folder.Interaction has it; empty for none.
func idTextOf(v topics.Raw) string {
	id, _ := idOf(v)
	return id.text
}

// namedBy adds the names and arguments of the calls in the client's history to its answers.
func namedBy(messages []topics.Raw, list []reply) []reply {
	if len(list) == 0 {
		return nil
	}
	type call struct {
		name string
		args topics.Raw
	}
	calls := map[string]call{}
	for _, m := range messages {
		if name, ok := field(m, "tool_name"); ok { // a call in the form of a batch
			calls[idTextOf(member(m, "tool_call_id"))] = call{textOf(name), member(m, "input")}
		}
		for _, b := range elementsOf(member(m, "content")) {
			if kind, _ := text(member(b, "type")); kind == "tool_call" {
				calls[idTextOf(member(b, "toolCallId"))] = call{textOf(member(b, "toolName")), member(b, "input")}
			}
		}
	}
	for i := range list {
		known, ok := calls[list[i].call]
		if !ok || list[i].call == "" {
			continue
		}
		if list[i].args = known.args; list[i].tool == "" {
			list[i].tool = known.name
		}
	}
	return list
}
