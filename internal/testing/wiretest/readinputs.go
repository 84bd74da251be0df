package wiretest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

func header(r *kgo.Record, name string) (string, bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == name {
			return string(r.Headers[i].Value), true
		}
	}
	return "", false
}

func readSource(r *kgo.Record) inputRecord {
	s := inputRecord{
		at: coordOf(r), key: digestOf(r.Key), value: digestOf(r.Value), nullKey: r.Key == nil, nullValue: r.Value == nil,
		size: len(r.Value), keyText: string(r.Key),
	}
	if from, ok := readCoord(r); ok {
		s.original = &from
	}
	return s
}

func readCoord(r *kgo.Record) (Coord, bool) {
	topic, _ := header(r, headerTopic)
	p, _ := header(r, headerPartition)
	o, _ := header(r, headerOffset)
	partition, err1 := strconv.ParseInt(p, 10, 32)
	offset, err2 := strconv.ParseInt(o, 10, 64)
	return Coord{Topic: topic, Partition: int32(partition), Offset: offset}, topic != "" && err1 == nil && err2 == nil
}

// contentOf returns a digest of a message without its time. Both spellings of the field names give the same digest.
func contentOf(o object) digest {
	return digestOf(
		compact(o.raw("session_id", "sessionId")), compact(o.raw("user_id", "userId")), roleOf(o),
		compact(o.raw("content")), withoutTimes(compact(o.raw("metadata"))))
}

// longHistory is from how many bytes on a history may be sent without its oldest exchanges. The limit is at least 480 KiB
// unless a test sets another; the margin is for the ways to count.
const longHistory = 440 << 10

// sequenceOf returns the digest of the concatenated lists of messages without null elements.
func sequenceOf(lists ...[]json.RawMessage) sequence {
	var said, raw bytes.Buffer
	var s sequence
	size := 0
	var begins []int // the messages with which an exchange begins
	for _, list := range lists {
		for _, m := range list {
			if isNull(m) {
				continue
			}
			size += len(m)
			exact := digestOf(compact(m))
			raw.Write(exact[:])
			o, err := objectIn(m)
			canon := exact
			if err == nil {
				canon = contentOf(o)
				if string(roleOf(o)) == `"user"` && s.n > 0 {
					begins = append(begins, s.n)
				}
			}
			said.Write(canon[:])
			s.n++
		}
	}
	if size >= longHistory {
		for _, at := range append(begins, s.n) {
			skip := at * len(digest{})
			s.shorter = append(s.shorter, sequence{
				n: s.n - at, canonical: digestOf(said.Bytes()[skip:]), raw: digestOf(raw.Bytes()[skip:]),
			})
		}
	}
	s.canonical, s.raw = digestOf(said.Bytes()), digestOf(raw.Bytes())
	return s
}

func readMessage(r *kgo.Record, partitions int32) message {
	m := message{at: coordOf(r)}
	m.cause, _ = header(r, headerID)
	o, err := objectOf(firstValue(r.Value))
	if err != nil {
		return m
	}
	session := o.text("session_id")
	if session == nil || *session == "" || strings.ContainsRune(*session, 0) {
		return m
	}
	m.session, m.content, m.user = *session, contentOf(o), o.text("user_id")
	if json.Unmarshal(roleOf(o), &m.role) != nil {
		m.role = "" // not a text
	}
	meta, err := objectIn(o.raw("metadata"))
	if id := meta.text("request_id"); id != nil {
		m.request = *id
	}
	readable := err == nil || o.raw("metadata") == nil
	m.accepted = readable && m.role != "" && m.role != "tool" && o.raw("content") != nil
	m.onOwnPartition = r.Key != nil && string(r.Key) == m.session && r.Partition == partitionOf(r.Key, partitions)
	return m
}

func readThinkResponse(r *kgo.Record) thinkResponse {
	t := thinkResponse{at: coordOf(r), session: string(r.Key), bytes: digestOf(r.Value)}
	t.cause, _ = header(r, headerID)
	t.tombstone = r.Value == nil || string(r.Value) == "null"
	o, err := objectOf(firstValue(r.Value))
	if err != nil {
		return t
	}
	for _, name := range []string{
		"previous_messages", "previousMessages", "last_input_message", "lastInputMessage", "last_input_response",
		"lastInputResponse", "messages", "tool_uses", "toolUses", "end_turn", "endTurn",
	} {
		_, has := o[name]
		t.hasFields = t.hasFields || has
	}
	previous := o.list("previous_messages", "previousMessages")
	said := o.list("last_input_response", "lastInputResponse", "messages")
	var echo []json.RawMessage
	if m := o.raw("last_input_message", "lastInputMessage"); m != nil {
		echo = []json.RawMessage{m}
	}
	t.history = sequenceOf(previous, echo, said)
	t.echo = echoOf(echo, said)
	for _, e := range o.list("tool_uses", "toolUses") {
		it, err := objectIn(e)
		if err != nil {
			t.nulls++
			continue
		}
		t.items = append(t.items, toolItem{id: it.text("tool_use_id", "toolUseId"), name: it.text("name")})
	}
	end := string(o.raw("end_turn", "endTurn"))
	t.end = end == "true"
	t.answer, t.agent = assembled(said)
	t.input = integerOf(o, "think_input_tokens", "inputTokens", "input_tokens")
	t.output = integerOf(o, "think_output_tokens", "outputTokens", "output_tokens")
	t.total = o.number("total_session_cost", "cost")
	if before := o.number("prevSessionCost"); before != nil && o.raw("total_session_cost") == nil {
		sum := *before // the camelCase workers write the cost of the step alone
		if t.total != nil {
			sum += *t.total
		}
		t.total = &sum
	}
	t.user = o.text("user_id", "userId")
	return t
}

func integerOf(o object, names ...string) int64 {
	if n := o.number(names...); n != nil {
		return int64(*n)
	}
	return 0
}

// echoOf returns the input that a response echoes: last_input_message, or else the last of `messages` that is not the
// assistant's.
func echoOf(echo, said []json.RawMessage) *digest {
	candidates := said
	if len(echo) > 0 {
		candidates = echo
	}
	for i := len(candidates) - 1; i >= 0; i-- {
		o, err := objectIn(candidates[i])
		if err != nil {
			continue
		}
		role := o.text("role")
		if len(echo) == 0 && (role == nil || *role == "assistant") {
			continue
		}
		d := inputOf(o)
		return &d
	}
	return nil
}

// inputOf digests role and content, by which an echoed input is recognized; workers drop the other fields.
func inputOf(o object) digest { return digestOf(roleOf(o), compact(o.raw("content"))) }

// roleOf returns the role of a message as JSON. A message without a role is the user's.
func roleOf(o object) json.RawMessage {
	role := compact(o.raw("role"))
	if text := o.text("role"); len(role) == 0 || text != nil && strings.TrimSpace(*text) == "" {
		return json.RawMessage(`"user"`)
	}
	return role
}

// assembled returns the text of an answer, which joins the assistant's messages, and the agent that they name.
func assembled(said []json.RawMessage) (digest, string) {
	var texts []string
	agent := ""
	for _, m := range said {
		o, err := objectIn(m)
		if err != nil {
			continue
		}
		if meta, err := objectIn(o.raw("metadata")); err == nil && agent == "" {
			if a := meta.text("agent"); a != nil {
				agent = *a
			}
		}
		if role := o.text("role"); role == nil || *role != "assistant" {
			continue
		}
		if s := o.text("content"); s != nil {
			texts = appendText(texts, *s)
			continue
		}
		for _, b := range o.list("content") {
			if block, err := objectIn(b); err == nil {
				if s := block.text("text"); s != nil {
					texts = appendText(texts, *s)
				}
			}
		}
	}
	if agent == "" {
		agent = "agent-1"
	}
	return digestOf([]byte(strings.Join(texts, "\n\n"))), agent
}

func appendText(texts []string, s string) []string {
	if strings.TrimSpace(s) == "" {
		return texts
	}
	return append(texts, s)
}

func readToolResult(r *kgo.Record) toolResult {
	out := toolResult{at: coordOf(r), session: string(r.Key), bytes: digestOf(r.Value)}
	out.cause, _ = header(r, headerID)
	o, err := objectOf(firstValue(r.Value))
	if err != nil || !utf8.Valid(r.Key) {
		return out
	}
	out.readable, out.id = true, o.text("tool_use_id")
	out.value = digestOf(wrapped(o["result"]))
	if s := o.text("status"); s != nil {
		out.status = *s
	}
	return out
}

// wrapped returns a tool's result as the pipeline passes it on: always an object, because other readers of the topics
// fail on any other type. The several ways to write a missing result count as one.
func wrapped(raw json.RawMessage) []byte {
	c := compact(raw)
	switch {
	case isNull(c), string(c) == `{"result":null}`:
		return []byte("{}")
	case c[0] == '{':
		return c
	default:
		return []byte(`{"result":` + string(c) + `}`)
	}
}
