package channel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// reader collects the mistakes of a file.
type reader struct{ mistakes []error }

func (r *reader) fail(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, fmt.Errorf("%w: line %d: %s", ErrSettings, line, fmt.Sprintf(format, args...)))
}

// object is a YAML mapping, whose members are read by name.
type object struct {
	r    *reader
	line int
	seen map[string]bool // the names of all members, also of those that were rejected
	// members are the values. Each has the line of its name, so that the error for an alias is where the alias is.
	members map[string]member
}

type member struct {
	line int
	node *yaml.Node
}

// object reads a mapping with no other members than those named.
func (r *reader) object(n *yaml.Node, line int, names ...string) *object {
	o := &object{r: r, line: line, seen: map[string]bool{}, members: map[string]member{}}
	if n = value(n); n.Kind != yaml.MappingNode {
		r.fail(line, "want members")
		return o
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], value(n.Content[i+1])
		repeated := o.seen[key.Value]
		o.seen[key.Value] = true
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(names, key.Value):
			r.fail(key.Line, "unknown member; want one of %s", strings.Join(names, ", "))
			continue
		case repeated:
			r.fail(key.Line, "%s: repeated", key.Value)
			continue
		case v.Kind == yaml.ScalarNode && v.ShortTag() == "!!null":
			r.fail(key.Line, "%s: no value", key.Value)
			continue
		}
		o.members[key.Value] = member{key.Line, v}
	}
	return o
}

// value returns what an alias stands for.
func value(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (o *object) fail(name, format string, args ...any) {
	o.r.fail(o.members[name].line, name+": "+format, args...)
}

// text reads a text of at most so many bytes, as it is written: an ID of digits is not a number. It is empty if it is absent.
func (o *object) text(name string, most int) string {
	m, ok := o.members[name]
	if !ok {
		return ""
	}
	text, mistake := textOf(m.node, most)
	if mistake != "" {
		o.fail(name, "%s", mistake)
	}
	return text
}

func textOf(n *yaml.Node, most int) (text, mistake string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return "", "want a text"
	}
	text = strings.TrimSpace(n.Value)
	switch {
	case text == "":
		return "", "blank"
	case len(text) > most:
		return "", fmt.Sprintf("longer than %d bytes", most)
	}
	return text, ""
}

// name reads an ID or a name: one line of printable characters.
func (o *object) name(name string) string {
	text := o.text(name, maxNodeName)
	if mistake := badName(text); mistake != "" {
		o.fail(name, "%s", mistake)
	}
	return text
}

func badName(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "a character of it is not printable"
	}
	return ""
}

// word reads a name of letters, digits, dots, hyphens and underscores.
func (o *object) word(name string) string {
	text := o.text(name, maxWord)
	for _, c := range []byte(text) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_') {
			o.fail(name, "want letters, digits, dots, hyphens and underscores")
			return text
		}
	}
	return text
}

// required reports a member that is absent.
func (o *object) required(name string) {
	if !o.seen[name] {
		o.r.fail(o.line, "%s: missing", name)
	}
}

// boolean reads true or false; false if it is absent.
func (o *object) boolean(name string) (b bool) {
	m, ok := o.members[name]
	if ok && (m.node.ShortTag() != "!!bool" || m.node.Decode(&b) != nil) {
		o.fail(name, "want true or false")
	}
	return b
}

// number reads a number from 0 to most; 0 if it is absent.
func (o *object) number(name string, most int) int {
	m, ok := o.members[name]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(m.node.Value)
	if m.node.Kind != yaml.ScalarNode || err != nil || n < 0 || n > most {
		o.fail(name, "want a number from 0 to %d", most)
		return 0
	}
	return n
}

// choice reads one of several words. If it is absent, it is the first one.
func choice[T ~string](o *object, name string, words ...T) T {
	if _, ok := o.members[name]; !ok {
		return words[0]
	}
	text := T(o.text(name, maxSettingsPrompt))
	if text != "" && !slices.Contains(words, text) {
		o.fail(name, "want one of %s", list(words))
	}
	return text
}

func list[T ~string](words []T) string {
	var named []string
	for _, w := range words {
		if w != "" {
			named = append(named, string(w))
		}
	}
	return strings.Join(named, ", ")
}

// elements returns the elements of a list, with their lines.
func (o *object) elements(name string) (list []member) {
	m, ok := o.members[name]
	if !ok {
		return nil
	}
	switch {
	case m.node.Kind != yaml.SequenceNode:
		o.fail(name, "want a list")
		return nil
	case len(m.node.Content) > maxEntries:
		o.fail(name, "more than %d elements", maxEntries)
		return nil
	}
	for _, n := range m.node.Content {
		list = append(list, member{n.Line, value(n)})
	}
	return list
}

// names reads a list of IDs.
func (o *object) names(name string) (ids []string) {
	for _, m := range o.elements(name) {
		text, mistake := textOf(m.node, maxNodeName)
		if mistake == "" {
			mistake = badName(text)
		}
		if mistake != "" {
			o.r.fail(m.line, "%s: %s", name, mistake)
			continue
		}
		ids = append(ids, text)
	}
	return ids
}
