package permission

import (
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// ofTool begins the name of a grant for a tool that the agent's adapter names. No kind of call is called so.
const ofTool = "tool"

var (
	plainKind = regexp.MustCompile(`^[a-z_]{1,64}$`)
	// unclear matches the text of a command that would look like a list of words or like a digest in the name of a grant.
	unclear = regexp.MustCompile(`^\[|^[0-9a-f]{64}(?::|$)`)
)

// withoutEffect are the members of the input of a command that do not change what runs: texts for people, IDs of the call and
// limits of its time.
var withoutEffect = []string{
	"description", "explanation", "justification", "reason", "call_id", "turn_id", "approval_id", "parsed_cmd", "timeout", "timeout_ms",
}

// complete names the member that the arguments of a host's request must have, so that they say everything that the request
// does. Hosts of older builds do not write it.
var complete = map[string]string{"fs/write_text_file": "content_sha256", "terminal/create": "env_sha256"}

// tool returns the stable name of a call. A person who approves the call can approve later calls of the same name too, so a name
// stands for one tool that the agent's adapter names, or for one exact call. A title is part of no name: the agent chooses it.
//
//	tool:NAME             the tool that _meta names
//	KIND:COMMAND          a command without arguments, directory or environment of its own
//	KIND:SHA256:COMMAND   any other command; the digest is that of the input
//	KIND:SHA256           a call without a command, or with a long one
//
// No two of these forms can be the same text. A call that says too little to be recognized has a name of its own.
func (c call) tool() string {
	if name := c.metaName(); name != "" && len(name) <= maxTool {
		return ofTool + ":" + name
	}
	kind := c.kindOfGrant()
	input, members := c.inputOfGrant()
	if input == "" {
		return kind + ":" + digestOfText("request", c.unique)
	}
	command := c.command()
	if command == "" || len(command) > maxTool {
		return kind + ":" + digestOfText("", input)
	}
	text := textOf(members["command"])
	if len(members) == 1 && !unclear.MatchString(text) {
		return kind + ":" + command
	}
	return kind + ":" + digestOfText("", input) + ":" + command
}

// kindOfGrant returns the kind of the call in the name of a grant. The agent chooses the kind, so one that could be mistaken for
// a tool, or for a request of the host, is replaced by its digest.
func (c call) kindOfGrant() string {
	switch {
	case c.method != "":
		return c.method
	case plainKind.MatchString(c.kind) && c.kind != ofTool:
		return c.kind
	}
	return "kind-" + digestOfText("", c.kind)
}

// inputOfGrant returns the input in its canonical form, and its members if it is an object. The input of a command has only the
// members that change what runs. It is empty if the input does not say everything that the call does.
func (c call) inputOfGrant() (canonical string, members map[string]topics.Raw) {
	if c.rawInput == nil {
		return "", nil
	}
	input := jsontext.Value(slices.Clone(c.rawInput))
	if json.Unmarshal(c.rawInput, &members) == nil && c.command() != "" {
		for _, name := range withoutEffect {
			delete(members, name)
		}
		input = jsontext.Value(encoded(members))
	}
	if required := complete[c.method]; required != "" && textOf(members[required]) == "" {
		return "", nil
	}
	if input.Canonicalize() != nil {
		input = jsontext.Value(c.rawInput)
	}
	return string(input), members
}
