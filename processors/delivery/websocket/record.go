package websocket

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// withheld replaces a record that cannot be parsed and may contain a token.
const withheld = "(withheld)"

// readable returns the first JSON value of a record without its bearer tokens, which browsers must not receive. ok is false
// if there is no valid value. Escaped lone surrogates are valid, because browsers accept them.
func readable(raw []byte) (value topics.Raw, ok bool) {
	d := decoder(raw)
	first, err := d.ReadValue()
	if err != nil || !utf8.Valid(first) || codec.Deeper(first, topics.MaxDepth) {
		return nil, false
	}
	if !suspicious(first) {
		return topics.Raw(bytes.Clone(first)), true
	}
	cleaned, err := appendWithoutTokens(make([]byte, 0, len(first)), decoder(first))
	return cleaned, err == nil
}

// unreadable returns the text for a record that is not JSON: its bytes, or withheld. For a tombstone it is "null", as in
// FlightDeck.
func unreadable(raw []byte) string {
	switch {
	case raw == nil:
		return "null"
	case suspicious(raw):
		return withheld
	default:
		return string(raw)
	}
}

func decoder(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// suspicious reports whether a text may contain a token: it contains "bearer", or an escape that may hide it.
func suspicious(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\u`)) || bytes.Contains(bytes.ToLower(raw), []byte("bearer"))
}

// appendWithoutTokens appends a value without its members that are tokens. Other members keep their bytes and order.
func appendWithoutTokens(b []byte, d *jsontext.Decoder) ([]byte, error) {
	opening := d.PeekKind()
	if opening != '{' && opening != '[' {
		v, err := d.ReadValue()
		return append(b, v...), err
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	b = append(b, byte(opening))
	empty := true
	for k := d.PeekKind(); k != '}' && k != ']'; k = d.PeekKind() {
		at := len(b)
		if !empty {
			b = append(b, ',')
		}
		if opening == '{' {
			name, err := d.ReadValue()
			if err != nil {
				return nil, err
			}
			if namesToken(name) {
				b = b[:at]
				if err := d.SkipValue(); err != nil {
					return nil, err
				}
				continue
			}
			b = append(append(b, name...), ':')
		}
		var err error
		if b, err = appendWithoutTokens(b, d); err != nil {
			return nil, err
		}
		empty = false
	}
	_, err := d.ReadToken()
	return append(b, byte(opening)+2), err // ']' and '}' are two codes after '[' and '{'
}

func namesToken(quoted []byte) bool {
	name, _ := jsontext.AppendUnquote(nil, quoted) // the name of a token has no invalid characters
	return strings.EqualFold(string(name), "bearerToken") || strings.EqualFold(string(name), "bearer_token")
}

// members returns the members of an object that have the given names, without nulls. If several have one name, the last
// counts.
func members(object topics.Raw, names ...string) map[string]topics.Raw {
	values := map[string]topics.Raw{}
	d := decoder(object)
	if d.PeekKind() != '{' {
		return values
	}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() == '"' {
		var quoted, value jsontext.Value
		if quoted, err = d.ReadValue(); err != nil {
			break
		}
		name, _ := jsontext.AppendUnquote(nil, quoted)
		if !slices.Contains(names, string(name)) {
			err = d.SkipValue()
			continue
		}
		key := string(name)
		if value, err = d.ReadValue(); err != nil {
			break
		}
		if value.Kind() == 'n' {
			delete(values, key)
		} else {
			values[key] = topics.Raw(bytes.Clone(value))
		}
	}
	return values
}
