package permission

import (
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// Asked is the event of a request that waits for a person.
type Asked struct {
	AgentID   string       `json:"agentId"`
	Request   AskedRequest `json:"request"`
	Dangerous bool         `json:"dangerous"`
	ExpiresAt string       `json:"expiresAt"`
	Options   topics.Raw   `json:"options,omitzero"`
	Preview   Preview      `json:"preview"`
}

// AskedRequest is the request of an Asked.
type AskedRequest struct {
	ID        string     `json:"id"`
	ToolName  string     `json:"toolName"`
	Arguments topics.Raw `json:"arguments"`
	Content   topics.Raw `json:"content,omitzero"`
	Timestamp string     `json:"timestamp"`
	view.Shown
}

// Preview is what a dialog shows.
type Preview struct {
	Icon    string `json:"icon"`
	Summary string `json:"summary,omitzero"`
	Args    string `json:"args"`
}

// Resolved is the event of a request that waits no more.
type Resolved struct {
	AgentID   string `json:"agentId"`
	RequestID string `json:"requestId"`
	Outcome   string `json:"outcome"`
	By        string `json:"by"`
}

// problem is the event of something that a person should know.
type problem struct {
	AgentID string `json:"agentId"`
	Message string `json:"message"`
}

// View returns the request as agents' rows show it.
func (a Asked) View() view.PermissionAsked {
	r := a.Request
	return view.PermissionAsked{
		ID: r.ID, ToolName: r.ToolName, Arguments: r.Arguments, Content: r.Content, Timestamp: r.Timestamp, Shown: r.Shown,
		ExpiresAt: a.ExpiresAt, Dangerous: a.Dangerous, Options: a.Options,
	}
}

func (r *Request) event(agentID string) Asked {
	v := r.view()
	return Asked{
		AgentID:   agentID,
		Request:   AskedRequest{ID: v.ID, ToolName: v.ToolName, Arguments: v.Arguments, Content: v.Content, Timestamp: v.Timestamp, Shown: v.Shown},
		Dangerous: v.Dangerous, ExpiresAt: v.ExpiresAt, Options: v.Options,
		Preview: Preview{
			Icon: icon(v.ToolName), Summary: summary(v.Arguments, v.ToolName), Args: indented(v.Arguments),
		},
	}
}

func (r *Request) view() view.PermissionAsked {
	return view.PermissionAsked{
		ID: r.GateId, ToolName: r.Name, Arguments: r.Arguments, Content: r.Content, Timestamp: view.Time(r.AskedMs),
		Shown:     view.Shown{Truncated: r.Shortened, Bytes: r.ArgsBytes, ArgsSHA256: r.ArgsSha256},
		ExpiresAt: view.Time(r.ExpiresMs), Dangerous: r.Dangerous, Options: encodedOptions(r.Options),
	}
}

// Bounds of the choices of a request.
const (
	maxOptions    = 16
	maxOptionID   = 256
	maxOptionName = 256
)

// offered is an option as ACP has it.
type offered struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// optionsOf returns the options of a request that have an ID. An option whose ID is too long cannot be chosen, and neither
// can allow_always of a dangerous request: they are left out.
func optionsOf(raw topics.Raw, dangerous bool) (list []*Option) {
	var all []offered
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for _, o := range all {
		if o.ID == "" || len(o.ID) > maxOptionID || dangerous && o.Kind == "allow_always" || len(list) == maxOptions {
			continue
		}
		list = append(list, &Option{Id: o.ID, Name: truncate.Within(o.Name, maxOptionName), Kind: truncate.Within(o.Kind, maxOptionName)})
	}
	return list
}

// encodedOptions returns options as ACP has them, nil for none.
func encodedOptions(list []*Option) topics.Raw {
	if len(list) == 0 {
		return nil
	}
	all := make([]offered, len(list))
	for i, o := range list {
		all[i] = offered{ID: o.Id, Name: o.Name, Kind: o.Kind}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return raw
}

// allowOnce returns the first option that allows once, empty if there is none.
func (r *Request) allowOnce() string { return r.first("allow_once") }

func (r *Request) first(kind string) string {
	for _, o := range r.Options {
		if o.Kind == kind {
			return o.Id
		}
	}
	return ""
}

// previewLimit is in UTF-16 code units, as the length of a text in a browser.
const previewLimit = 400

// indented returns the arguments of a permission request as a dialog shows them: indented JSON, cut after 400 characters, and
// "{}" for what is no object.
func indented(args topics.Raw) string {
	v := jsontext.Value(args).Clone()
	if v.Kind() != '{' || v.Indent(jsontext.WithIndent("  ")) != nil {
		return "{}"
	}
	text := strings.TrimSpace(string(v))
	units := 0
	for i, r := range text {
		if units += utf16.RuneLen(r); units > previewLimit {
			return text[:i] + "\n…"
		}
	}
	return text
}

// icon returns what a dialog shows for a tool: file, terminal or shield.
func icon(toolName string) string {
	switch {
	case strings.HasPrefix(toolName, "fs/"), strings.Contains(toolName, "file"):
		return "file"
	case strings.HasPrefix(toolName, "terminal/"), strings.Contains(toolName, "command"):
		return "terminal"
	default:
		return "shield"
	}
}

// summary returns the line that says what a tool is about to do, empty if the arguments do not say it.
func summary(args topics.Raw, toolName string) string {
	var known struct {
		Path    any `json:"path"`
		Command any `json:"command"`
	}
	if json.Unmarshal(args, &known) != nil {
		return ""
	}
	path, _ := known.Path.(string)
	command, _ := known.Command.(string)
	switch {
	case strings.Contains(toolName, "write") && path != "":
		return path
	case strings.Contains(toolName, "create") && command != "":
		return command
	case command != "":
		return command
	}
	return path
}
