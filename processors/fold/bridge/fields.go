package bridge

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// Fields are the members of a JSON object under construction, each with a comma before it.
type Fields []byte

// Text adds a string.
func (f Fields) Text(name, value string) Fields { return append(f.name(name), Text(value)...) }

// Value adds a value as it is; nothing for nil.
func (f Fields) Value(name string, value topics.Raw) Fields {
	if len(value) == 0 {
		return f
	}
	return append(f.name(name), value...)
}

// Flag adds a boolean.
func (f Fields) Flag(name string, value bool) Fields { return strconv.AppendBool(f.name(name), value) }

func (f Fields) name(name string) Fields { return append(append(append(f, ','), Text(name)...), ':') }

// Object is the finished object.
func (f Fields) Object() topics.Raw {
	if len(f) == 0 {
		return topics.Raw("{}")
	}
	return append(append([]byte{'{'}, f[1:]...), '}')
}

// Text is a string as JSON. What is no UTF-8 becomes U+FFFD.
func Text(s string) topics.Raw {
	quoted, _ := jsontext.AppendQuote(nil, s)
	return quoted
}

// Get follows names into an object; nil for what is absent or null.
func Get(object topics.Raw, names ...string) topics.Raw {
	for _, name := range names {
		object, _ = topics.Lookup(object, name)
	}
	return object
}

// String is the text of a JSON string; empty for everything else.
func String(v topics.Raw) string {
	if jsontext.Value(v).Kind() != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}

// Elements are the elements of an array that are not null; none for everything else.
func Elements(array topics.Raw) []topics.Raw {
	if jsontext.Value(array).Kind() != '[' {
		return nil
	}
	all, _ := topics.Elements(bytes.TrimSpace(array))
	var some []topics.Raw
	for _, e := range all {
		if e != nil {
			some = append(some, e)
		}
	}
	return some
}
