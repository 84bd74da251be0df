package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The shapes of the records that the pipeline writes. They are repeated here on purpose: a mistake in the codecs must
// show as a violation.

type kind uint8

const (
	anyValue kind = iota
	aText
	anInteger
	aDouble
	aBoolean
	anObject
	aList
)

type field struct {
	name     string
	kind     kind
	null     bool // may be null
	optional bool // may be left out
	// inner is the shape of the object, or of each element of the list.
	inner []field
}

var (
	messageShape = []field{
		{name: "session_id", kind: aText, null: true},
		{name: "user_id", kind: aText, null: true},
		{name: "role", kind: aText, null: true},
		{name: "content", null: true},
		{name: "timestamp", kind: aText, null: true},
		{name: "metadata", kind: anObject, null: true},
	}
	enrichedShape = []field{
		{name: "session_id", kind: aText},
		{name: "user_id", kind: aText, null: true},
		{name: "cost", kind: aDouble, null: true},
		{name: "history", kind: aList},
		{name: "latest_input", kind: anObject, inner: messageShape},
		{name: "memoir_context", kind: aText, null: true},
		{name: "timestamp", kind: aText},
	}
	itemShape = []field{
		{name: "tool_use_id", kind: aText, null: true},
		{name: "tool_id", kind: aText, null: true},
		{name: "name", kind: aText, null: true},
		{name: "input", kind: anObject, null: true},
		{name: "session_id", kind: aText, null: true},
		{name: "total_tools", kind: anInteger},
		{name: "timestamp", kind: aText, null: true},
	}
	resultShape = []field{
		{name: "session_id", kind: aText, null: true},
		{name: "tool_use_id", kind: aText, null: true},
		{name: "tool_id", kind: aText, null: true},
		{name: "name", kind: aText, null: true},
		{name: "result", kind: anObject, null: true},
		{name: "latency_ms", kind: anInteger},
		{name: "status", kind: aText, null: true},
		{name: "total_tools", kind: anInteger},
		{name: "timestamp", kind: aText, null: true},
	}
	setShape = []field{
		{name: "session_id", kind: aText},
		{name: "user_id", kind: aText, null: true},
		{name: "expected_count", kind: anInteger},
		{name: "results", kind: aList, inner: resultShape},
		{name: "expected", kind: aList, inner: []field{
			{name: "tool_use_id", kind: aText, null: true}, {name: "name", kind: aText, null: true},
		}},
		{name: "deadline_ms", kind: anInteger},
		{name: "emitted", kind: aBoolean},
		{name: "timestamp", kind: aText},
		{name: "complete", kind: aBoolean, optional: true},
	}
	entryShape = []field{
		{name: "tool_use_id", kind: aText, null: true},
		{name: "name", kind: aText, null: true},
		{name: "result", kind: anObject},
		{name: "status", kind: aText, null: true},
	}
	toolMessageShape = []field{
		{name: "session_id", kind: aText},
		{name: "user_id", kind: aText, null: true},
		{name: "role", kind: aText},
		{name: "content", kind: aList, inner: entryShape},
		{name: "timestamp", kind: aText},
		{name: "metadata", kind: anObject},
	}
	outputShape = []field{
		{name: "session_id", kind: aText, optional: true},
		{name: "user_id", kind: aText, optional: true},
		{name: "content", kind: aText},
		{name: "input_tokens", kind: anInteger},
		{name: "output_tokens", kind: anInteger},
		{name: "cost", kind: aDouble, optional: true},
		{name: "source_agent", kind: aText},
		{name: "reply_to", kind: anObject, optional: true},
		{name: "timestamp", kind: aText},
		{name: "request_id", kind: aText, optional: true},
		{name: "status", kind: aText, optional: true},
		{name: "error", kind: anObject, optional: true, inner: []field{
			{name: "code", kind: aText}, {name: "message", kind: aText},
		}},
	}
)

// shapeProblem describes the first fault of an object that the pipeline wrote, or returns "". The description contains no
// value.
func shapeProblem(raw []byte, shape []field) string {
	if validate(raw) != nil {
		return "not a valid JSON object"
	}
	return shapeProblemIn(raw, shape)
}

func shapeProblemIn(raw []byte, shape []field) string {
	ms, err := members(raw)
	if err != nil {
		return "not a valid JSON object"
	}
	if !isCompact(raw, ms) {
		return "white space between fields"
	}
	i := 0
	for _, f := range shape {
		if i >= len(ms) || ms[i].name != f.name {
			if f.optional {
				continue
			}
			return "field " + f.name + " missing or out of order"
		}
		if problem := f.problem(ms[i].raw); problem != "" {
			return problem
		}
		i++
	}
	if i < len(ms) {
		return "field unknown, twice or out of order"
	}
	return ""
}

// isCompact reports whether an object has no white space between its own tokens.
func isCompact(raw []byte, ms []member) bool {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range ms {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(m.name) + ":")
		b.Write(m.raw)
	}
	b.WriteByte('}')
	return bytes.Equal(b.Bytes(), raw)
}

var doubleText = regexp.MustCompile(`^-?\d+(\.\d+)?([eE][-+]?\d+)?$`)

func (f field) problem(v json.RawMessage) string {
	if isNull(v) {
		if f.null {
			return ""
		}
		return "field " + f.name + " is null"
	}
	ok := true
	switch f.kind {
	case aText:
		ok = v[0] == '"'
	case anInteger:
		ok = !strings.ContainsAny(string(v), `.eE"[{tfn`)
	case aDouble:
		ok = doubleText.Match(v) && bytes.ContainsAny(v, ".eE")
	case aBoolean:
		ok = v[0] == 't' || v[0] == 'f'
	case anObject:
		ok = v[0] == '{'
	case aList:
		ok = v[0] == '['
	}
	if !ok {
		return "field " + f.name + " has another type"
	}
	return f.innerProblem(v)
}

func (f field) innerProblem(v json.RawMessage) string {
	if f.inner == nil {
		return ""
	}
	if f.kind == anObject {
		return inField(f.name, shapeProblemIn(v, f.inner))
	}
	es, err := elements(v)
	if err != nil {
		return "field " + f.name + " is unreadable"
	}
	for i, e := range es {
		if problem := shapeProblemIn(e, f.inner); problem != "" {
			return inField(fmt.Sprintf("%s[%d]", f.name, i), problem)
		}
	}
	return ""
}

func inField(name, problem string) string {
	if problem == "" {
		return ""
	}
	return name + ": " + problem
}

var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6}|\.\d{9})?Z$`)

// hasInvalidTimestamp reports whether the record's timestamp is not in the format of Java's Instant.
func hasInvalidTimestamp(o object) bool {
	t := o.text("timestamp")
	return t == nil || !instant.MatchString(*t)
}
