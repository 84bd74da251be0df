package folder

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// The functions of this file read valid JSON without decoding it. As in Python's parser, object names may repeat (the last
// one is used) and lone surrogates are allowed.

func valid(raw []byte) bool {
	return jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func trimSpace(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// members iterates over the members of an object. Names are unquoted.
func members(object topics.Raw) iter.Seq2[string, topics.Raw] {
	return func(yield func(string, topics.Raw) bool) {
		for i := skipSpace(object, 1); i < len(object) && object[i] == '"'; {
			end := stringEnd(object, i)
			name := unquote(object[i:end])
			i = skipSpace(object, skipSpace(object, end)+1)
			end = valueEnd(object, i)
			if !yield(name, object[i:end:end]) {
				return
			}
			i = skipSpace(object, skipSpace(object, end)+1)
		}
	}
}

// span returns where the value of the last member of that name begins and ends in its object; 0, 0 for none.
func span(object topics.Raw, name string) (start, end int) {
	i := 1
	for n, v := range members(object) {
		at := i + skipName(object[i:])
		if n == name {
			start, end = at, at+len(v)
		}
		i = at + len(v)
	}
	return start, end
}

// skipName returns the index of the first member's value in b, which begins before the member's name.
func skipName(b []byte) int {
	i := skipSpace(b, 0)
	if i < len(b) && b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return skipSpace(b, skipSpace(b, stringEnd(b, i))+1)
}

// elements iterates over the values of an array.
func elements(array topics.Raw) iter.Seq[topics.Raw] {
	return func(yield func(topics.Raw) bool) {
		for i := skipSpace(array, 1); i < len(array) && array[i] != ']'; {
			end := valueEnd(array, i)
			if !yield(array[i:end:end]) {
				return
			}
			i = skipSpace(array, skipSpace(array, end)+1)
		}
	}
}

// lookup returns the last member of that name; nil if there is none or the value is not an object.
func lookup(object topics.Raw, name string) (value topics.Raw) {
	if !isObject(object) {
		return nil
	}
	for n, v := range members(object) {
		if n == name {
			value = v
		}
	}
	return value
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the index after the string that starts at b[i].
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}

// valueEnd returns the index after the value that starts at b[i].
func valueEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue
		default:
			i = wordEnd(b, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return len(b)
}

func wordEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', ':', ' ', '\n', '\t', '\r', '}', ']', '{', '[', '"':
			return i
		}
	}
	return i
}

func isObject(v topics.Raw) bool { return len(v) > 0 && v[0] == '{' }
func isArray(v topics.Raw) bool  { return len(v) > 0 && v[0] == '[' }
func isString(v topics.Raw) bool { return len(v) > 0 && v[0] == '"' }
func isNull(v topics.Raw) bool   { return len(v) == 0 || v[0] == 'n' }

// unquote returns the text of a JSON string. A lone surrogate becomes U+FFFD.
func unquote(v topics.Raw) string {
	if len(v) >= 2 && bytes.IndexByte(v, '\\') < 0 {
		return intern(v[1 : len(v)-1])
	}
	// The error reports lone surrogates, which AppendUnquote has replaced.
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}

// intern converts to a string without an allocation for frequent names and event types.
func intern(b []byte) string {
	switch string(b) {
	case "type":
		return "type"
	case "data":
		return "data"
	case "id":
		return "id"
	case "delta":
		return "delta"
	case "text":
		return "text"
	case "name":
		return "name"
	case "input":
		return "input"
	case "rawInput":
		return "rawInput"
	case "output":
		return "output"
	case "isError":
		return "isError"
	case "message_start":
		return "message_start"
	case "message_delta":
		return "message_delta"
	case "message_end":
		return "message_end"
	case "thought_delta":
		return "thought_delta"
	case "tool_call":
		return "tool_call"
	case "tool_result":
		return "tool_result"
	}
	return string(b)
}
