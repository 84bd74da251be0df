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

// withheld stands in for bytes that cannot be read and may hold a token.
const withheld = "(withheld)"

// readable is the first JSON value of a record without its bearer tokens (D-20); ok is false where there is none.
// Escapes of lone surrogates pass: browsers take them.
func readable(raw []byte) (value topics.Raw, ok bool) {
	d := decoder(raw)
	whole, err := d.ReadValue()
	if err != nil || !utf8.Valid(whole) || codec.Deeper(whole, topics.MaxDepth) {
		return nil, false
	}
	if !suspicious(whole) {
		return topics.Raw(bytes.Clone(whole)), true
	}
	cleaned, err := appendWithoutTokens(make([]byte, 0, len(whole)), decoder(whole))
	return cleaned, err == nil
}

// unreadable is what is shown of a record that is no JSON. Null reads "null", as in FlightDeck.
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

// suspicious reports whether a text may have a member that is a token: by its name, or by one that is escaped.
func suspicious(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\u`)) || bytes.Contains(bytes.ToLower(raw), []byte("bearer"))
}

// appendWithoutTokens appends a value without its members that are tokens. The others keep their bytes and order.
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
	return append(b, byte(opening)+2), err // the brackets' codes differ by two
}

func namesToken(quoted []byte) bool {
	name, _ := jsontext.AppendUnquote(nil, quoted) // names of tokens have nothing to replace
	return strings.EqualFold(string(name), "bearerToken") || strings.EqualFold(string(name), "bearer_token")
}

// members are an object's own members of those names; nulls and absent ones are missing.
func members(object topics.Raw, names ...string) map[string]topics.Raw {
	found := map[string]topics.Raw{}
	d := decoder(object)
	if d.PeekKind() != '{' {
		return found
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
			delete(found, key)
		} else {
			found[key] = topics.Raw(bytes.Clone(value))
		}
	}
	return found
}
