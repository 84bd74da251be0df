package peer

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/topics"
)

// ToolDefinition describes the tool to a model. It has the fields of think.Tool, so it can be converted to that.
type ToolDefinition struct {
	Name        string
	Description string
	InputSchema topics.Raw // a JSON schema of an object
}

const toolDescription = "Delegate a task to a peer, which is another instance with agents, data and tools of its own, and wait " +
	"for its result. The peer sees only the content. A task that needs a person's approval there is rejected: " +
	"delegate it again, as a new task, once a person there has approved it."

const toolSchema = `{"type":"object","properties":{` +
	`"peerId":{"type":"string","description":"ID of the peer"},` +
	`"content":{"type":"string","description":"The task, with all that the peer needs to know"},` +
	`"agentId":{"type":"string","description":"Agent of the peer; omit for its default agent"},` +
	`"model":{"type":"string","description":"Model for the task; omit for the agent's model"},` +
	`"taskId":{"type":"string","description":"ID of the task; omit for a new one"},` +
	`"timeoutMs":{"type":"number","description":"Longest time for the task in milliseconds"}` +
	`},"required":["peerId","content"]}`

// Tool returns the definition of the tool delegate_to_peer, for the models of agents that may delegate. Calls of the tool are
// answered by Graph: it needs no worker, and a worker of the same agent must not answer it.
func Tool() ToolDefinition {
	return ToolDefinition{Name: ToolName, Description: toolDescription, InputSchema: topics.Raw(toolSchema)}
}

// toolInput is the input of a call of the tool. Optional texts are empty if they are absent or blank.
type toolInput struct {
	peerID, content, agentID, model, taskID string
	timeout                                 time.Duration // 0 if it is absent
}

// readInput reads the input of a call. Texts are trimmed. The error is for the model.
func readInput(raw topics.Raw) (in toolInput, err error) {
	members := map[string]jsontext.Value{}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if raw == nil || json.UnmarshalDecode(dec, &members) != nil {
		return in, inputError("the input is no object")
	}
	for _, field := range []struct {
		name     string
		to       *string
		required bool
	}{
		{"peerId", &in.peerID, true},
		{"content", &in.content, true},
		{"agentId", &in.agentID, false},
		{"model", &in.model, false},
		{"taskId", &in.taskID, false},
	} {
		switch v := members[field.name]; v.Kind() {
		case 0, 'n':
		case '"':
			text, _ := jsontext.AppendUnquote(nil, v) // a text that is not UTF-8 is changed to UTF-8
			*field.to = peerwire.Trim(string(text))
		default:
			return in, inputError(field.name + " is no text")
		}
		switch {
		case field.required && *field.to == "":
			return in, inputError(field.name + " is blank")
		case field.to != &in.content && peerwire.Length(*field.to) > peerwire.MaxID:
			return in, inputError(field.name + " is longer than " + strconv.Itoa(peerwire.MaxID) + " characters")
		}
	}
	switch v := members["timeoutMs"]; v.Kind() {
	case 0, 'n':
	case '0':
		ms, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return in, inputError("timeoutMs is out of range")
		}
		ms = min(max(math.Trunc(ms), float64(MinTimeout.Milliseconds())), float64(MaxTimeout.Milliseconds()))
		in.timeout = time.Duration(ms) * time.Millisecond
	default:
		return in, inputError("timeoutMs is no number")
	}
	return in, nil
}

// inputError says what is wrong with an input. It does not quote the input.
type inputError string

func (e inputError) Error() string { return "Invalid input of " + ToolName + ": " + string(e) + "." }
