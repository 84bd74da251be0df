package permission

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/topics"
)

// Bounds of what people are shown.
const (
	maxTool  = 512       // bytes of the name of a tool, with its command
	maxText  = 1 << 10   // bytes of the title in a message
	maxArgs  = 240 << 10 // bytes of the arguments in the gate, which accepts somewhat more
	maxShown = 200       // bytes of the name of a tool for people
)

// call is what an agent asks permission for.
type call struct {
	toolCallID, title, kind      string
	rawInput, content, locations topics.Raw
	meta                         map[string]topics.Raw

	method string
	unique string // of the request
	// broken says that the call cannot be read.
	broken bool
}

// callOf returns the call of a request. Members of another type than ACP's are left out.
func callOf(req crewbody.Permission) call {
	c := call{method: req.Method, unique: req.Run + "/" + req.RequestID}
	members := map[string]topics.Raw{}
	if req.Method != "" {
		c.rawInput = value(req.Args)
	} else if json.Unmarshal(req.ToolCall, &members) != nil {
		c.broken = true
	}
	for name, field := range map[string]*string{"toolCallId": &c.toolCallID, "title": &c.title, "kind": &c.kind} {
		*field = textOf(members[name])
	}
	for name, field := range map[string]*topics.Raw{"content": &c.content, "locations": &c.locations, "rawInput": &c.rawInput} {
		if v := value(members[name]); v != nil {
			*field = v
		}
	}
	if json.Unmarshal(members["_meta"], &c.meta) != nil {
		c.meta = nil
	}
	c.kind = cmp.Or(c.kind, "other")
	return c
}

// value returns a JSON value, nil for null and for what is none.
func value(v topics.Raw) topics.Raw {
	if string(v) == "null" || !jsontext.Value(v).IsValid() {
		return nil
	}
	return v
}

// textOf returns a JSON string, empty for any other value.
func textOf(v topics.Raw) (text string) {
	if json.Unmarshal(v, &text) != nil {
		return ""
	}
	return text
}

func (c call) id() string { return truncate.Within(c.toolCallID, maxText) }

// metaName returns the name of the tool in _meta: toolName, or the toolName of an extension such as that of claude-code-acp.
func (c call) metaName() string {
	if name := textOf(c.meta["toolName"]); name != "" {
		return name
	}
	for _, extension := range slices.Sorted(maps.Keys(c.meta)) {
		var members map[string]topics.Raw
		if json.Unmarshal(c.meta[extension], &members) != nil {
			continue
		}
		if name := textOf(members["toolName"]); name != "" {
			return name
		}
	}
	return ""
}

// command returns the command of the input: its text, or the JSON of its words, and then the JSON of the arguments in a member of
// their own.
func (c call) command() string {
	var input struct {
		Command topics.Raw `json:"command"`
		Args    topics.Raw `json:"args"`
	}
	if json.Unmarshal(c.rawInput, &input) != nil {
		return ""
	}
	switch jsontext.Value(input.Command).Kind() {
	case '"':
		text := textOf(input.Command)
		if input.Args != nil {
			return text + " " + string(input.Args)
		}
		return text
	case '[':
		return string(input.Command) + string(input.Args)
	}
	return ""
}

// name returns the name for people.
func (c call) name() string {
	return truncate.Within(cmp.Or(c.method, c.metaName(), c.title, c.kind), maxShown)
}

func (c call) message() string {
	if c.title == "" {
		return c.name()
	}
	return truncate.Within(c.title, maxText)
}

// arguments returns the input as an object. An agent that sends none is described by the rest of its call.
func (c call) arguments() topics.Raw {
	switch {
	case jsontext.Value(c.rawInput).Kind() == '{':
		return c.rawInput
	case c.rawInput != nil:
		return encoded(map[string]any{"input": c.rawInput})
	}
	rest := map[string]any{}
	if c.title != "" {
		rest["title"] = c.title
	}
	if c.content != nil {
		rest["content"] = c.content
	}
	if c.locations != nil {
		rest["locations"] = c.locations
	}
	return encoded(rest)
}

// args returns the arguments of the gate: all that the agent says about the call.
func (c call) args() topics.Raw {
	all := struct {
		Tool      string     `json:"tool"`
		Title     string     `json:"title,omitzero"`
		Kind      string     `json:"kind,omitzero"`
		Arguments topics.Raw `json:"arguments"`
		Content   topics.Raw `json:"content,omitzero"`
		Locations topics.Raw `json:"locations,omitzero"`
	}{Tool: c.name(), Title: c.title, Kind: c.kind, Arguments: c.arguments()}
	if c.rawInput != nil { // otherwise the arguments have them
		all.Content, all.Locations = c.content, c.locations
	}
	return encoded(all)
}

// visible reports whether a person can be shown the whole call.
func (c call) visible() bool {
	return !c.broken && c.meta[crewbody.Shortened] == nil && len(c.args()) <= maxArgs
}

// show sets what every event shows of the request: the beginning of arguments that are too long for that.
func (r *Request) show(c call) {
	arguments := c.arguments()
	r.Name, r.Arguments = c.name(), arguments
	if c.rawInput != nil {
		r.Content = c.content
	}
	if seen.Whole(slices.Concat(r.Arguments, r.Content)) {
		return
	}
	whole := c.args()
	r.Shortened, r.Content, r.ArgsBytes, r.ArgsSha256 = true, nil, int64(len(whole)), topics.ArgsSHA256(whole)
	if !seen.Whole(arguments) {
		r.Arguments = encoded(struct {
			Start  string `json:"start"`
			Bytes  int    `json:"bytes"`
			SHA256 string `json:"sha256"`
		}{truncate.Within(string(arguments), seen.Limit/2), len(arguments), digestOfText("", string(arguments))})
	}
}

func encoded(v any) topics.Raw {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return topics.Raw("{}")
	}
	return raw
}

func digestOfText(domain, text string) string {
	d := sha256.Sum256([]byte(domain + text))
	return hex.EncodeToString(d[:])
}
