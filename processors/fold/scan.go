package fold

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// This file walks JSON that is known to be valid, without decoding it. Python's parser takes repeated names (the last
// counts) and lone surrogates, so ours does too.

func valid(raw []byte) bool {
	return jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func trimSpace(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// members are the names of an object, without quotes and escapes, and their values.
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

// span is where a member's value stands in its object; of several with one name the last.
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

// skipName is how far a value is from what stands before its name.
func skipName(b []byte) int {
	i := skipSpace(b, 0)
	if i < len(b) && b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return skipSpace(b, skipSpace(b, stringEnd(b, i))+1)
}

// elements are the values of an array.
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

// lookup is a member of an object; of several with one name the last, nil for none. What is no object has none.
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

// stringEnd is the index after the string that starts at b[i].
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

// valueEnd is the index after the value that starts at b[i].
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

// unquote is the text of a string; a lone surrogate is U+FFFD.
func unquote(v topics.Raw) string {
	if len(v) >= 2 && bytes.IndexByte(v, '\\') < 0 {
		return intern(v[1 : len(v)-1])
	}
	// The error reports surrogates, which have been replaced.
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}

// intern spares an allocation for each of the vocabulary's own words.
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
