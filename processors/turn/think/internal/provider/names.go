package provider

import (
	"maps"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

// Rules are what a provider accepts in a request. A history can have names and IDs that a model made up, or that another
// provider accepts.
type Rules struct {
	// Name matches the names of tools, ID the IDs of calls.
	Name, ID *regexp.Regexp
	// NewID makes an ID from a digest in hexadecimal (default: "call_" and 24 digits).
	NewID func(digest string) string
}

// AnyName matches names that every provider accepts.
var AnyName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

const (
	longestName = 64
	nameDigits  = 8
)

// Names maps the names of tools to those that a provider accepts, and back. The same name is always mapped to the same one.
type Names struct {
	accepted *regexp.Regexp
	to, from map[string]string
}

// namesOf returns the names of tools.
func namesOf(rules Rules, tools []think.Tool) *Names {
	n := &Names{accepted: rules.Name, to: map[string]string{}, from: map[string]string{}}
	var all []string
	for _, t := range tools {
		all = append(all, t.Name)
	}
	n.add(all)
	return n
}

// with returns the names of the tools and of a conversation.
func (n *Names) with(messages []Message) *Names {
	var more []string
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Kind == Call && n.to[b.Name] == "" {
				more = append(more, b.Name)
			}
		}
	}
	if more == nil {
		return n
	}
	all := &Names{accepted: n.accepted, to: maps.Clone(n.to), from: maps.Clone(n.from)}
	all.add(more)
	return all
}

// add maps names. Names that are accepted come first, so that no other one takes their place.
func (n *Names) add(names []string) {
	for _, name := range names {
		if _, taken := n.from[name]; n.accepted.MatchString(name) && !taken {
			n.to[name], n.from[name] = name, name
		}
	}
	for _, name := range names {
		for seed := name; n.to[name] == ""; seed += "+" {
			mapped := cleaned(name) + "_" + toolcall.Digest("name", seed)[:nameDigits]
			if _, taken := n.from[mapped]; !taken {
				n.to[name], n.from[mapped] = mapped, name
			}
		}
	}
}

// cleaned returns a name with other characters in place of those that a provider may not accept, and without its end.
func cleaned(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if clean == "" || clean[0] == '-' || clean[0] >= '0' && clean[0] <= '9' {
		clean = "tool_" + clean
	}
	return clean[:min(len(clean), longestName-nameDigits-1)]
}

// Sent returns the name that is sent for a tool.
func (n *Names) Sent(name string) string {
	if sent := n.to[name]; sent != "" {
		return sent
	}
	return name
}

// Own returns the tool that the model calls by a name.
func (n *Names) Own(name string) string {
	if own, ok := n.from[name]; ok {
		return own
	}
	return name
}

// IsTool reports whether tools have a name, or one that begins with it.
func (n *Names) IsTool(name string) (whole, beginning bool) {
	for sent := range n.from {
		whole, beginning = whole || sent == name, beginning || strings.HasPrefix(sent, name)
	}
	return whole, beginning
}

// sent maps the calls of a conversation.
type sent struct {
	names *Names
	rules Rules
	seen  map[string]int  // calls so far by their ID in the conversation
	taken map[string]bool // IDs that are sent
}

// call returns a call with its name and an ID that are accepted, and that no other call has.
func (s *sent) call(b Block) Block {
	name, id := s.names.Sent(b.Name), b.ID
	for n := s.seen[b.ID]; n > 0 || !s.rules.ID.MatchString(id) || s.taken[id]; n++ {
		if id = s.rules.newID(toolcall.Digest("id", b.ID, strings.Repeat("+", n))); !s.taken[id] {
			break
		}
	}
	s.seen[b.ID]++
	s.taken[id] = true
	if b.Raw != nil && (name != b.Name || id != b.ID) {
		b.Raw = with(b.Raw, member{"id", id}, member{"name", name})
	}
	b.ID, b.Name = id, name
	return b
}

func (r Rules) newID(digest string) string {
	if r.NewID != nil {
		return r.NewID(digest)
	}
	return "call_" + digest[:24]
}

type member struct{ name, text string }

// with returns an object in which members have these texts.
func with(object topics.Raw, members ...member) topics.Raw {
	d := jsontext.NewDecoder(strings.NewReader(string(object)), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return object
	}
	changed := topics.Raw{'{'}
	for _, m := range members {
		changed = quoted(quoted(changed, m.name, ':'), m.text, ',')
	}
	for d.PeekKind() == '"' {
		name, _ := d.ReadToken()
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return object
		}
		known := false
		for _, m := range members {
			known = known || m.name == key
		}
		if !known {
			changed = append(append(quoted(changed, key, ':'), value...), ',')
		}
	}
	changed[len(changed)-1] = '}'
	return changed
}

func quoted(b []byte, text string, after byte) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return append(b, after)
}
