package peerwire

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
)

// The bounds of bodies.
const (
	// MaxBody is the largest body of a request, in bytes.
	MaxBody = 1_000_000
	// MaxReply and MaxCard are the largest bodies of a reply and a card that are read, in bytes.
	MaxReply = 8 << 20
	MaxCard  = 256 << 10
	// MaxDepth is the largest nesting depth of a body.
	MaxDepth = 64
	// MaxID is the largest length of an ID, in UTF-16 code units.
	MaxID = 1024
)

var (
	errTooLarge = errors.New("too large")
	errSyntax   = errors.New("not JSON")
	errObject   = errors.New("not a JSON object")
)

// fields are the members of an object. Of duplicates it has the last one.
type fields map[string]jsontext.Value

// read reads a body of at most max bytes.
func read(body []byte, max int) (fields, error) {
	switch {
	case len(body) > max:
		return nil, errTooLarge
	case codec.Deeper(body, MaxDepth):
		return nil, errSyntax
	}
	value := jsontext.Value(body)
	if !value.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, errSyntax
	}
	return object(value)
}

// object returns the members of a valid value.
func object(value jsontext.Value) (fields, error) {
	if value.Kind() != '{' {
		return nil, errObject
	}
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, _ = dec.ReadToken()
	f := fields{}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, errSyntax
		}
		name := token.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, errSyntax
		}
		f[name] = v.Clone()
	}
	return f, nil
}

// text reads a text. given is false for null and an absent member, and ok is false for another type.
func (f fields) text(name string) (text string, given, ok bool) {
	v := f[name]
	switch v.Kind() {
	case 0, 'n':
		return "", false, true
	case '"':
		return unquoted(v), true, true
	default:
		return "", true, false
	}
}

// unquoted returns the text of a JSON string. Lone surrogates and invalid UTF-8 are replaced.
func unquoted(v jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}

// isExact reports whether a JSON string has no text that is replaced.
func isExact(v jsontext.Value) bool {
	_, err := jsontext.AppendUnquote(nil, v)
	return err == nil
}

// number reads a finite number.
func (f fields) number(name string) (x float64, given, ok bool) {
	v := f[name]
	switch v.Kind() {
	case 0, 'n':
		return 0, false, true
	case '0':
		x, err := strconv.ParseFloat(string(v), 64)
		return x, true, err == nil
	default:
		return 0, true, false
	}
}

// elements returns the elements of an array, at most max.
func (f fields) elements(name string, max int) (list []jsontext.Value, given, ok bool) {
	v := f[name]
	switch v.Kind() {
	case 0, 'n':
		return nil, false, true
	case '[':
	default:
		return nil, true, false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, _ = dec.ReadToken()
	for dec.PeekKind() != ']' {
		element, err := dec.ReadValue()
		if err != nil || len(list) == max {
			return nil, true, false
		}
		list = append(list, element.Clone())
	}
	return list, true, true
}

// texts reads an array of texts, at most max.
func (f fields) texts(name string, max int) (list []string, ok bool) {
	elements, _, ok := f.elements(name, max)
	for _, v := range elements {
		if v.Kind() != '"' {
			return nil, false
		}
		list = append(list, unquoted(v))
	}
	return list, ok
}

// pretty writes a body as JavaScript writes it with an indentation of 2. Values are structs of texts, numbers and lists, so it
// cannot fail.
func pretty(v any) []byte {
	body, err := json.Marshal(v, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("peer: write a body: " + err.Error())
	}
	return body
}
