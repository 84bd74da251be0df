package wiretest

import (
	"strings"
	"time"
)

// Malformed returns records of every malformed kind for a topic. The session must have no open turn. The fate of a
// record states the only effect that it may have. Records have the session's key unless the case is about the key.
func Malformed(n Names, topic, session string) []Reply {
	m := malformer{names: n, topic: topic, key: []byte(session), session: session}
	m.generic()
	switch topic {
	case n.MessageInput:
		m.messages()
	case n.Think:
		m.responses()
	case n.ToolUseResult:
		m.results()
	case n.SessionControl:
		m.add("unknown action", `{"action":"explode"}`, FateDeadLetter)
		m.add("action of wrong type", `{"action":["cancel"]}`, FateDeadLetter)
	case n.ReplyTo:
		m.add("route of wrong type", `["callbackService"]`, FateDeadLetter)
	}
	return m.out
}

type malformer struct {
	names   Names
	topic   string
	key     []byte
	session string
	out     []Reply
}

func (m *malformer) record(kind string, f Fate, r Record) {
	m.out = append(m.out, Reply{Record: r, Expected: Sent{Fate: f, Case: kind}})
}

func (m *malformer) raw(kind string, key, value []byte, f Fate) {
	m.record(kind, f, Record{Topic: m.topic, Key: key, Value: value, Partition: AtHome})
}

func (m *malformer) add(kind, value string, f Fate) { m.raw(kind, m.key, []byte(value), f) }

// generic adds the cases of every input.
func (m *malformer) generic() {
	n, dead := m.names, FateDeadLetter
	null, empty, undecodable := dead, dead, dead
	switch m.topic {
	case n.Think:
		// A tombstone clears the history. An object without fields is dead-lettered.
		null = FateExplained
	case n.ReplyTo:
		// A tombstone removes the route. {} is a valid descriptor: its fields are not examined.
		null, empty = FateExplained, FateExplained
	case n.ToolUseDLQ:
		// Other programs write here too: a record that names no open call is ignored.
		null, empty = FateExplained, FateExplained
	case n.ThinkDLQ:
		// Workers put records here that they could not read, so that any bytes are allowed.
		null, empty, undecodable = FateExplained, FateExplained, FateExplained
	}
	m.raw("tombstone", m.key, nil, null)
	m.add("JSON null", "null", null)
	m.add("empty object", "{}", empty)
	m.raw("zero length", m.key, []byte{}, undecodable)
	m.add("array", "[]", undecodable)
	m.add("string", `"text"`, undecodable)
	m.add("number", "17", undecodable)
	m.add("cut off", `{"session_id":"`+m.session, undecodable)
	m.add("not JSON", "<xml/>", undecodable)
	m.add("invalid UTF-8", "{\"session_id\":\"\xff\xfe\"}", m.either(undecodable))
	m.add("nested 10,000 deep", strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000), undecodable)
	m.add("nested 100,000 objects", strings.Repeat(`{"a":`, 100_000), undecodable)
	m.raw("key not UTF-8", []byte("\xff\xfe"), []byte("{}"), dead)
	m.raw("key with NUL", []byte(m.session+"\x00x"), []byte("{}"), dead)
	m.raw("null key", nil, []byte("{}"), dead)
	m.raw("empty key", []byte{}, []byte("{}"), dead)
}

// either allows reply-to and tool-use-dlq to decode the record and ignore it.
func (m *malformer) either(f Fate) Fate {
	if m.topic == m.names.ReplyTo || m.topic == m.names.ToolUseDLQ {
		return FateExplained
	}
	return f
}

// message returns a valid message to corrupt. Each has a different text, which identifies its turn.
func (m *malformer) message() Say {
	return Say{
		Session: m.session, User: "mallory", Text: "malformed " + number(len(m.out)),
		Time: time.UnixMilli(1_790_000_000_000),
	}
}

func (m *malformer) messages() {
	either := FateTurnOrDeadLetter
	tool := m.message()
	tool.Role = "tool"
	m.raw("foreign tool message", m.key, tool.Value(), FateDeadLetter)
	swap := func(kind, old, with string, f Fate) {
		m.add(kind, strings.Replace(string(m.message().Value()), old, with, 1), f)
	}
	id := `"session_id":` + quote(m.session)
	swap("session_id is an object", id, `"session_id":{}`, FateDeadLetter)
	swap("session_id is null", id, `"session_id":null`, FateDeadLetter)
	swap("session_id is missing", id+",", "", FateDeadLetter)
	swap("session_id is empty", id, `"session_id":""`, FateDeadLetter)
	swap("session_id with NUL", id, `"session_id":"a\u0000b"`, FateDeadLetter)
	swap("metadata is a string", `{"locale":"en-US","client":"web"}`, `"web"`, either)
	swap("role is null", `"role":"user"`, `"role":null`, FateTurn)
	swap("role is an array", `"role":"user"`, `"role":["user"]`, either)
	swap("content is null", `"content":"malformed`, `"content":null,"text":"malformed`, either)
	swap("content is deep", `"content":"`, `"content":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+`,"text":"`,
		either)
	swap("content is not UTF-8", "malformed", "mal\xffformed", either)
	swap("text after the value", `"web"}}`, `"web"}} {"x":1}`, either)
	m.record("negative timestamp", either, Record{
		Topic: m.topic, Key: m.key, Value: m.message().Value(), Partition: AtHome, Timestamp: time.UnixMilli(-86_400_000),
	})
	m.raw("null key, good value", nil, m.message().Value(), either)
	m.raw("another key, good value", []byte("not-"+m.session), m.message().Value(), FateTurn)
	m.record("another partition", FateTurn, Record{
		Topic: m.topic, Key: m.key, Value: m.message().Value(), Partition: Elsewhere,
	})
}

func (m *malformer) responses() {
	n := "null"
	good := (&response{
		session: quote(m.session), user: n, total: "0.0", previous: n, echo: n, end: true, time: `"2026-06-20T08:15:03Z"`,
		messageTexts: []string{`{"role":"assistant","content":"unsolicited"}`},
	}).snakeCase()
	swap := func(kind, old, with string) { m.add(kind, strings.Replace(good, old, with, 1), FateDeadLetter) }
	m.add("unsolicited response", good, FateDeadLetter)
	swap("tool_uses is an object", `"tool_uses":null`, `"tool_uses":{}`)
	swap("tool_uses of numbers", `"tool_uses":null`, `"tool_uses":[1,"x",null]`)
	swap("end_turn is an array", `"end_turn":true`, `"end_turn":[]`)
	swap("tokens overflow", `"think_input_tokens":0`, `"think_input_tokens":1e400`)
	swap("messages are text", `"previous_messages":[]`, `"previous_messages":"none"`)
	m.raw("response under null key", nil, []byte(good), FateDeadLetter)
	m.record("response on another partition", FateDeadLetter, Record{
		Topic: m.topic, Key: m.key, Value: []byte(good), Partition: Elsewhere,
	})
}

func (m *malformer) results() {
	r := result{
		session: m.session, id: "nobody-asked", name: "x", value: "{}", status: "success", total: 1,
		time: "2026-06-20T08:15:03Z",
	}
	good := string(r.encode())
	swap := func(kind, old, with string) { m.add(kind, strings.Replace(good, old, with, 1), FateDeadLetter) }
	m.add("result of an unknown call", good, FateDeadLetter)
	swap("null id", `"nobody-asked"`, "null")
	swap("blank id", `"nobody-asked"`, `"  "`)
	swap("id is an object", `"nobody-asked"`, "{}")
	swap("result is deep", `"result":{}`, `"result":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000))
	swap("latency is text", `"latency_ms":0`, `"latency_ms":"soon"`)
	m.record("negative timestamp", FateDeadLetter, Record{
		Topic: m.topic, Key: m.key, Value: []byte(good), Partition: AtHome, Timestamp: time.UnixMilli(-1),
	})
	m.record("result on another partition", FateDeadLetter, Record{
		Topic: m.topic, Key: m.key, Value: []byte(good), Partition: Elsewhere,
	})
}
