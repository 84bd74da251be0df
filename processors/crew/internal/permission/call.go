package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/crew/internal/transcript"
	"github.com/turntable-streams/turntable/topics"
)

// Bounds of what people are shown.
const (
	maxTool    = 512      // bytes of the name of a tool, with its command
	maxText    = 1 << 10  // bytes of the title
	maxArgs    = 16 << 10 // bytes of the arguments in the gate
	maxPreview = 2 << 10  // bytes of the arguments in the row
	maxShown   = 200      // bytes of the name of a tool for people
)

// call is what an agent asks permission for.
type call struct {
	ToolCallID string                `json:"toolCallId"`
	Title      string                `json:"title"`
	Kind       string                `json:"kind"`
	RawInput   topics.Raw            `json:"rawInput"`
	Content    topics.Raw            `json:"content"`
	Locations  topics.Raw            `json:"locations"`
	Meta       map[string]topics.Raw `json:"_meta"`

	method string
	unique string // of the request
}

// callOf returns the call of a request. The call of a request whose toolCall cannot be read has only its ID.
func callOf(req topics.CrewPermission) call {
	c := call{}
	if req.Method == "" && json.Unmarshal(req.ToolCall, &c) != nil {
		c = call{}
	}
	if req.Method != "" {
		c.RawInput = req.Args
	}
	for _, v := range []*topics.Raw{&c.RawInput, &c.Content, &c.Locations} {
		if string(*v) == "null" || !jsontext.Value(*v).IsValid() {
			*v = nil
		}
	}
	c.method, c.unique = req.Method, req.Run+"/"+req.RequestID
	if c.Kind == "" {
		c.Kind = "other"
	}
	return c
}

func (c call) id() string { return cut(c.ToolCallID, maxText) }

// tool returns the stable name for which a person can approve later requests too. A title is no such name: the agent chooses
// it. A request without input cannot be recognized again, so its name is its own.
func (c call) tool() string {
	if c.method != "" {
		return cut(c.method, maxShown)
	}
	if name := c.metaName(); name != "" && len(name) <= maxTool {
		return name
	}
	kind := cut(c.Kind, maxShown)
	if command := c.command(); command != "" && len(command) <= maxTool {
		return kind + ":" + command
	}
	if c.RawInput == nil {
		return kind + ":" + digestOfText("request", c.unique)
	}
	input := jsontext.Value(slices.Clone(c.RawInput))
	if input.Canonicalize() != nil {
		input = jsontext.Value(c.RawInput)
	}
	return kind + ":" + digestOfText("", string(input))
}

// metaName returns the name of the tool in _meta: toolName, or the toolName of an extension such as that of claude-code-acp.
func (c call) metaName() string {
	var name string
	if json.Unmarshal(c.Meta["toolName"], &name) == nil && name != "" {
		return name
	}
	for _, extension := range slices.Sorted(maps.Keys(c.Meta)) {
		var e struct {
			ToolName string `json:"toolName"`
		}
		if json.Unmarshal(c.Meta[extension], &e) == nil && e.ToolName != "" {
			return e.ToolName
		}
	}
	return ""
}

// command returns the exact command of the input: its text, or the JSON of its words.
func (c call) command() string {
	var input struct {
		Command topics.Raw `json:"command"`
	}
	if json.Unmarshal(c.RawInput, &input) != nil {
		return ""
	}
	switch jsontext.Value(input.Command).Kind() {
	case '"':
		var text string
		if json.Unmarshal(input.Command, &text) != nil {
			return ""
		}
		return text
	case '[':
		return string(input.Command)
	}
	return ""
}

// name returns the name for people.
func (c call) name() string {
	switch {
	case c.method != "":
		return cut(c.method, maxShown)
	case c.metaName() != "":
		return cut(c.metaName(), maxShown)
	case c.Title != "":
		return cut(c.Title, maxShown)
	}
	return cut(c.Kind, maxShown)
}

func (c call) message() string {
	if c.Title == "" {
		return c.name()
	}
	return cut(c.Title, maxText)
}

// arguments returns the input as an object. An agent that sends none is described by the rest of its call.
func (c call) arguments() topics.Raw {
	switch {
	case jsontext.Value(c.RawInput).Kind() == '{':
		return c.RawInput
	case c.RawInput != nil:
		return encoded(map[string]any{"input": c.RawInput})
	}
	rest := map[string]any{}
	if c.Title != "" {
		rest["title"] = cut(c.Title, maxText)
	}
	if text := transcript.Flatten(c.Content); text != "" {
		rest["content"] = text
	}
	if c.Locations != nil {
		rest["locations"] = c.Locations
	}
	return encoded(rest)
}

// args returns the arguments of the gate.
func (c call) args() topics.Raw {
	return encoded(struct {
		Tool      string     `json:"tool"`
		Title     string     `json:"title,omitzero"`
		Kind      string     `json:"kind,omitzero"`
		Arguments topics.Raw `json:"arguments"`
	}{c.name(), cut(c.Title, maxText), cut(c.Kind, maxShown), within(c.arguments(), maxArgs)})
}

// preview returns the arguments that the row keeps.
func (c call) preview() topics.Raw { return within(c.arguments(), maxPreview) }

// within returns an object that is too large as its beginning, with its size and its digest.
func within(object topics.Raw, limit int) topics.Raw {
	if len(object) <= limit {
		return object
	}
	return encoded(struct {
		Start  string `json:"start"`
		Bytes  int    `json:"bytes"`
		SHA256 string `json:"sha256"`
	}{cut(string(object), limit/2), len(object), digestOfText("", string(object))})
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

// cut returns text with at most limit bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const more = "…"
	end := limit - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
