package permission

import (
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

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
