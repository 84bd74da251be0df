package permission

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/turntable-streams/turntable/internal/crewbody"
)

// dangerous reports whether every such call needs a person's decision: an approval never counts for later ones. It recognizes
// what is destructive in the common ways to write it. It is no sandbox: a command can be hidden from it. A call that cannot be read is dangerous.
func (c call) dangerous() bool {
	if c.broken || c.meta[crewbody.Shortened] != nil { // what cannot be seen
		return true
	}
	texts := c.texts()
	for _, text := range texts {
		if destroysData(text) {
			return true
		}
	}
	if c.runsCommands() {
		for _, text := range texts {
			if destructive(text) {
				return true
			}
		}
	}
	if c.deletes() {
		for _, text := range texts {
			for _, word := range append(strings.Fields(text), text) {
				if critical(word) {
					return true
				}
			}
		}
	}
	return false
}

// runsCommands reports whether the tool is a shell. A tool that takes a command is one, whatever it is called.
func (c call) runsCommands() bool {
	return c.command() != "" || c.named("shell", "bash", "terminal", "exec")
}

var removes = regexp.MustCompile(`(?i)(?:^|[^a-z])rm(?:$|[^a-z])`)

// deletes reports whether the tool deletes files.
func (c call) deletes() bool {
	return c.named("delete", "remove") || removes.MatchString(c.metaName()) || removes.MatchString(c.kind)
}

// named reports whether one of the names of the tool has one of the parts.
func (c call) named(parts ...string) bool {
	for _, name := range []string{c.metaName(), c.kind, c.method} {
		for _, part := range parts {
			if strings.Contains(strings.ToLower(name), part) {
				return true
			}
		}
	}
	return false
}

// texts returns all texts in the input, and lists of texts also as the command that they are. An agent that sends no input
// often has the command in the title, and the path among the locations.
func (c call) texts() (texts []string) {
	texts = textsOf(texts, decoded(c.rawInput))
	if input, ok := decoded(c.rawInput).(map[string]any); ok {
		if command, ok := input["command"].(string); ok {
			if args, ok := input["args"].([]any); ok {
				texts = append(texts, strings.Join(append([]string{command}, stringsOf(args)...), " "))
			}
		}
	}
	texts = textsOf(texts, decoded(c.locations))
	if c.rawInput == nil {
		texts = textsOf(append(texts, c.title), decoded(c.content))
	}
	return texts
}

func decoded(raw []byte) (v any) {
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// textsOf appends all texts in a value. Their order does not matter.
func textsOf(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(texts, v)
	case []any:
		if words := stringsOf(v); len(words) > 1 {
			texts = append(texts, strings.Join(words, " "))
		}
		for _, e := range v {
			texts = textsOf(texts, e)
		}
	case map[string]any:
		for _, e := range v {
			texts = textsOf(texts, e)
		}
	}
	return texts
}

func stringsOf(list []any) (words []string) {
	for _, e := range list {
		if word, ok := e.(string); ok {
			words = append(words, word)
		}
	}
	return words
}
