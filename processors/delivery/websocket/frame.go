package websocket

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// rendered is a record as clients see it: a pipeline_event and, if the record is an output for them, a chat_response. Both
// frames are incomplete: completed adds the IDs.
type rendered struct {
	feed      feed
	partition int32
	offset    int64
	at        time.Time
	event     []byte
	chat      []byte // nil if there is none
	output    string // the ID of the answer, the same for every repeat of the output
	cause     causality
}

// size is about how much memory a record takes, in bytes.
func (r *rendered) size() int {
	return len(r.event) + len(r.chat) + 8*(len(r.cause.gives)+3*len(r.cause.needs))
}

// render renders a record of a session.
func render(f feed, session string, r processors.Inbound) rendered {
	s := rendered{feed: f, partition: r.Partition, offset: r.Offset, at: r.Timestamp}
	value, ok := readable(r.Value)
	s.event, s.cause = pipelineEvent(f, r, value, ok), causalityOf(f, r, value)
	if f == feedOutput && ok && value[0] == '{' {
		m := members(value, "content", "timestamp", "cost", "reply_to")
		if strings.TrimSpace(topics.ServiceOf(m["reply_to"])) == "" {
			s.output = answerID(session, causeOf(r))
			s.chat = chatResponse(s.output, m)
		}
	}
	return s
}

// causeOf identifies an output: by its turntable.id header, which repeats have too, or by its position.
func causeOf(r processors.Inbound) string {
	if id := r.Header(topics.HeaderID); id != nil {
		return string(id)
	}
	return r.Topic + "/" + strconv.Itoa(int(r.Partition)) + "/" + strconv.FormatInt(r.Offset, 10)
}

// pipelineEvent returns the incomplete frame of a record. If ok is false, value is not set and the record is not JSON.
func pipelineEvent(f feed, r processors.Inbound, value topics.Raw, ok bool) []byte {
	b := make([]byte, 0, len(value)+512)
	b = append(b, `{"type":"pipeline_event","data":{"topic":`...)
	b = quote(b, r.Topic)
	b = quote(append(b, `,"sessionId":`...), string(r.Key))
	b = quote(append(b, `,"timestamp":`...), topics.Timestamp(r.Timestamp))
	b = strconv.AppendInt(append(b, `,"partition":`...), int64(r.Partition), 10)
	b = strconv.AppendInt(append(b, `,"offset":`...), r.Offset, 10)
	if !ok {
		return append(quote(append(b, `,"rawValue":`...), unreadable(r.Value)), '}')
	}
	b = append(append(b, `,"value":`...), value...)
	switch f {
	case feedThink:
		b = appendCost(b, value)
	case feedToolResult:
		if ms := members(value, "latency_ms")["latency_ms"]; isNumber(ms) {
			b = append(append(b, `,"latencyMs":`...), ms...)
		}
	}
	return append(b, '}')
}

// appendCost appends the cost of a think step. It reads the older member names, which FlightDeck's dashboard expects, and
// falls back to those that the records have today.
func appendCost(b []byte, value topics.Raw) []byte {
	m := members(value, "input_tokens", "output_tokens", "cost", "end_turn", "think_input_tokens",
		"think_output_tokens", "think_cost")
	start := len(b)
	b = append(b, `,"cost":{`...)
	empty := len(b)
	for _, c := range []struct{ name, old, today string }{
		{"inputTokens", "input_tokens", "think_input_tokens"},
		{"outputTokens", "output_tokens", "think_output_tokens"},
		{"dollars", "cost", "think_cost"},
		{"endTurn", "end_turn", ""},
	} {
		v := m[c.old]
		if v == nil {
			v = m[c.today]
		}
		if !isNumber(v) && !(c.name == "endTurn" && isBoolean(v)) {
			continue
		}
		if len(b) > empty {
			b = append(b, ',')
		}
		b = append(append(append(append(b, '"'), c.name...), `":`...), v...)
	}
	if len(b) == empty {
		return b[:start]
	}
	return append(b, '}')
}

func isNumber(v topics.Raw) bool  { return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') }
func isBoolean(v topics.Raw) bool { return len(v) > 0 && (v[0] == 't' || v[0] == 'f') }

// chatResponse returns the incomplete frame of an answer with an ID, from the members of an output.
func chatResponse(id string, m map[string]topics.Raw) []byte {
	b := append(make([]byte, 0, len(m["content"])+256), `{"type":"chat_response","data":{"id":"`...)
	b = append(append(b, id...), `","role":"assistant","content":`...)
	b = appendText(b, m["content"])
	b = appendText(append(b, `,"timestamp":`...), m["timestamp"])
	if isNumber(m["cost"]) {
		b = append(append(b, `,"cost":`...), m["cost"]...)
	}
	return append(b, '}')
}

// appendText appends a value as a JSON string. If it is not a string, it appends its readable text (topics.Text).
func appendText(b []byte, v topics.Raw) []byte {
	if len(v) > 0 && v[0] == '"' {
		return append(b, v...)
	}
	return quote(b, topics.Text(v))
}

// answerID derives the UUID of an answer, so that a client can drop repeats. FlightDeck's UUIDs are random.
func answerID(session, cause string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(session)) + "/" + session + "/" + cause))
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // version 8, variant 10
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// completed completes a frame with its session and, if id is not empty, its event ID.
func completed(frame []byte, session, id string) []byte {
	b := append(make([]byte, 0, len(frame)+len(session)+len(id)+32), frame...)
	if id != "" {
		b = append(append(append(b, `,"event_id":"`...), id...), '"')
	}
	return append(quote(append(b, `,"session_id":`...), session), '}')
}

// resumed returns the frame that ends a replay. An empty reason means that the client received everything it missed.
func resumed(session string, replayed int, reason string) []byte {
	b := quote([]byte(`{"type":"resumed","data":{"session_id":`), session)
	b = strconv.AppendBool(append(b, `,"complete":`...), reason == "")
	b = strconv.AppendInt(append(b, `,"replayed":`...), int64(replayed), 10)
	if reason != "" {
		b = quote(append(b, `,"reason":`...), reason)
	}
	return append(b, `}}`...)
}

// refused returns the frame that denies a subscription.
func refused(session string, r *entrance.Refusal) []byte {
	reason := r.Text
	if r.Status == http.StatusForbidden {
		reason = "not yours to see"
	}
	b := quote([]byte(`{"type":"refused","data":{"session_id":`), session)
	b = quote(append(b, `,"reason":`...), reason)
	if r.RetryAfter > 0 {
		b = strconv.AppendInt(append(b, `,"retry_after_ms":`...), r.RetryAfter.Milliseconds(), 10)
	}
	return append(b, `}}`...)
}

// quote appends a text as a JSON string. Invalid UTF-8 is replaced by U+FFFD, so it never fails.
func quote(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}
