package topics_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// member is a member of a JSON object, and node an object whose members keep their order. A value is a node, a Raw, a list of
// these, or what the package json can write.
type (
	member struct {
		name  string
		value any
	}
	node []member
)

func (n node) with(name string, value any) node { return append(n, member{name, value}) }

func (n node) get(name string) any {
	if i := slices.IndexFunc(n, func(m member) bool { return m.name == name }); i >= 0 {
		return n[i].value
	}
	return nil
}

// appendJSON appends a value. An object that has no objects is on one line.
func appendJSON(b []byte, v any, indent string) []byte {
	switch v := v.(type) {
	case topics.Raw:
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendJSON(b, e, indent)
		}
		return append(b, ']')
	case node:
		open, between, end := "{", ", ", "}"
		if slices.ContainsFunc(v, func(m member) bool { _, ok := m.value.(node); return ok }) {
			open, between, end = "{\n  "+indent, ",\n  "+indent, "\n"+indent+"}"
		}
		for i, m := range v {
			b = append(b, between...)
			if i == 0 {
				b = append(b[:len(b)-len(between)], open...)
			}
			b, _ = jsontext.AppendQuote(b, m.name)
			b = appendJSON(append(b, ": "...), m.value, indent+"  ")
		}
		if len(v) == 0 {
			return append(b, "{}"...)
		}
		return append(b, end...)
	default:
		raw, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			panic(err)
		}
		return append(b, raw...)
	}
}

func document(n node) []byte { return append(appendJSON(nil, n, ""), '\n') }

// edit replaces the member at a path of a record, in each element of the arrays on the path. A nil replacement removes it.
// found is the number of objects at the end of the path, with the member or without.
func edit(t testing.TB, v topics.Raw, path []string, replacement topics.Raw) (edited topics.Raw, found int) {
	switch {
	case len(v) > 0 && v[0] == '[':
		elements, err := topics.Elements(v)
		require.NoError(t, err)
		for i := range elements {
			n := 0
			elements[i], n = edit(t, elements[i], path, replacement)
			found += n
		}
		return topics.Splice(elements...), found
	case len(v) == 0 || v[0] != '{':
		return v, 0
	}
	var written node
	set := func(value topics.Raw) {
		if len(path) > 1 {
			value, found = edit(t, value, path[1:], replacement)
		} else {
			value, found = replacement, 1
		}
		if value != nil {
			written = written.with(path[0], value)
		}
	}
	if len(path) == 1 {
		found = 1
	}
	members := membersOf(t, v)
	for _, m := range members {
		if m.name == path[0] {
			set(m.value.(topics.Raw))
		} else {
			written = append(written, m)
		}
	}
	if members.get(path[0]) == nil && len(path) == 1 {
		set(nil)
	}
	return compact(written), found
}

// compact writes an object whose values are Raw.
func compact(n node) topics.Raw {
	b := topics.Raw{'{'}
	for i, m := range n {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, _ := jsontext.AppendQuote(nil, m.name)
		b = append(append(append(b, quoted...), ':'), m.value.(topics.Raw)...)
	}
	return append(b, '}')
}

func membersOf(t testing.TB, v topics.Raw) (n node) {
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowInvalidUTF8(true))
	_, err := d.ReadToken()
	require.NoError(t, err)
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		require.NoError(t, err)
		text := name.String()
		value, err := d.ReadValue()
		require.NoError(t, err)
		n = n.with(text, topics.Raw(bytes.Clone(value)))
	}
	return n
}
