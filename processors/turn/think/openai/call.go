package openai

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

// call is a tool call whose arguments are not complete.
type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
	joiner    toolcall.Joiner
}

// add adds a piece of a call. OpenAI sends ID and name in the first piece and the arguments in all of them, with the index of
// the call. Compatible servers repeat ID and name, divide the name, send whole calls without an index or with one index for all
// of them, or without an ID.
func (r *reader) add(piece, function topics.Raw) {
	index := number(provider.Get(piece, "index"))
	id, name := provider.String(piece, "id"), provider.String(function, "name")
	arguments := provider.Get(function, "arguments")
	at := len(r.calls) - 1
	for at >= 0 && r.calls[at].index != index {
		at--
	}
	if at < 0 || r.begins(r.calls[at], id, name, arguments) {
		at = len(r.calls)
		r.calls = append(r.calls, &call{index: index, id: id})
	}
	c := r.calls[at]
	if c.id == "" {
		c.id = id
	}
	r.rename(c, name)
	c.add(arguments)
	r.reasoning.of(at, piece)
}

// begins reports whether a piece begins another call than the one before it that has its index.
func (r *reader) begins(c *call, id, name string, arguments topics.Raw) bool {
	switch {
	case name == "":
		return false // every call has a name
	case c.begun() && c.whole() && beginsObject(arguments):
		return id == "" || id != c.id || written(arguments) != c.arguments.String()
	case id != "" && id == c.id:
		return false
	case id != "" && c.id != "":
		return c.begun() == c.whole() // else a server gives every piece an ID of its own
	default: // two calls without arguments
		first, _ := r.reply.Names.IsTool(c.name)
		second, _ := r.reply.Names.IsTool(name)
		_, joined := r.reply.Names.IsTool(c.name + name)
		return !c.begun() && first && second && !joined && !strings.HasPrefix(name, c.name)
	}
}

// rename adds the name of a piece: a repeat of the name, the name so far with more, or its next part.
func (r *reader) rename(c *call, piece string) {
	_, part := r.reply.Names.IsTool(c.name + piece)
	whole, _ := r.reply.Names.IsTool(c.name)
	switch {
	case piece == "", c.begun() && c.name != "":
	case c.name != "" && part && !whole:
		c.name += piece
	case strings.HasPrefix(piece, c.name):
		c.name = piece
	case whole && strings.HasPrefix(c.name, piece):
	default:
		c.name += piece
	}
}

// add adds a piece of the arguments, which some servers send as an object instead of its text. A whole object replaces an
// empty one, or is a repeat: nothing can follow an object.
func (c *call) add(arguments topics.Raw) {
	if c.begun() && beginsObject(arguments) && (strings.TrimSpace(c.arguments.String()) == "{}" || c.arguments.String() == written(arguments)) {
		c.arguments.Reset()
	}
	switch jsontext.Value(arguments).Kind() {
	case '"':
		c.arguments.WriteString(c.joiner.Add(arguments))
	case 0, 'n':
	default:
		c.arguments.Write(arguments)
	}
}

// begun reports whether arguments have arrived.
func (c *call) begun() bool { return strings.TrimSpace(c.arguments.String()) != "" }

// whole reports whether the arguments are a JSON value.
func (c *call) whole() bool {
	return jsontext.Value(c.arguments.String()).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// written returns arguments as text.
func written(arguments topics.Raw) string {
	if jsontext.Value(arguments).Kind() == '"' {
		return topics.Text(arguments)
	}
	return string(arguments)
}

func beginsObject(arguments topics.Raw) bool {
	return strings.HasPrefix(strings.TrimSpace(written(arguments)), "{")
}
