package wiretest

import (
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// dispatch writes the calls of a response.
func (p *reference) dispatch(s *refSession, o object) {
	t := s.open
	items := o.list("tool_uses", "toolUses")
	first := map[string]*refCall{}
	for i, raw := range items {
		it, err := objectIn(raw)
		if err != nil {
			continue
		}
		a := toolItem{id: it.text("tool_use_id", "toolUseId"), name: it.text("name")}
		c := &refCall{asked: a, raw: it}
		t.calls = append(t.calls, c)
		topic := p.names.ToolUse
		switch {
		case !a.valid():
			topic = p.names.ToolUseDLQ
			c.result = p.synthesised(s, c, "invalid_tool_call")
		case first[*a.id] != nil:
			topic = p.names.ToolUseDLQ
			c.first = first[*a.id]
		default:
			first[*a.id] = c
		}
		if p.flaw == flawLoseCall && i == len(items)-1 && topic == p.names.ToolUse {
			c.result = p.synthesised(s, c, "timeout")
			continue
		}
		text := func(names ...string) string {
			if v := it.raw(names...); v != nil {
				return string(v)
			}
			return "null"
		}
		p.emit(topic, s.name, t.id+"/"+number(t.step)+"/call/"+number(i), `{"tool_use_id":`+text("tool_use_id", "toolUseId")+
			`,"tool_id":`+text("tool_id", "toolId")+`,"name":`+text("name")+`,"input":`+text("input")+`,"session_id":`+
			text("session_id", "sessionId")+`,"total_tools":`+number(len(items))+`,"timestamp":`+text("timestamp")+`}`)
	}
	t.deadline = time.Now().Add(p.toolTimeout)
	held := t.held
	t.held = nil
	for _, r := range held {
		if r, o := r, mustObject(r); true {
			p.result(s, r, o)
		}
	}
	if s.open == t && !t.thinking {
		p.complete(s)
	}
}

func mustObject(r *kgo.Record) object {
	o, _ := objectOf(r.Value)
	return o
}

func (p *reference) synthesised(s *refSession, c *refCall, reason string) []byte {
	return []byte(`{"session_id":` + quote(s.name) + `,"tool_use_id":` + nullable(c.asked.id) + `,"tool_id":null,"name":` +
		nullable(c.asked.name) + `,"result":{"error":"no result","reason":` + quote(reason) +
		`},"latency_ms":0,"status":"error","total_tools":1,"timestamp":` + quote(stamp(time.Now())) + `}`)
}

// result handles a tool's result.
func (p *reference) result(s *refSession, r *kgo.Record, o object) {
	t := s.open
	f := readToolResult(r)
	if t == nil || blank(f.id) || s.accepted[f.bytes] {
		p.dead(r, "nobody waits for it")
		return
	}
	if t.thinking {
		t.held = append(t.held, r)
		return
	}
	for _, c := range t.calls {
		if c.first != nil || !c.asked.valid() || *c.asked.id != *f.id || c.result != nil {
			continue
		}
		s.accepted[f.bytes] = true
		value, status := string(wrapped(o["result"])), rawText(o, "status")
		switch {
		case len(value) > 300_000:
			c.result = p.synthesised(s, c, "too_large")
		case p.flaw == flawResult:
			value = `{"value":"invented"}`
			fallthrough
		default:
			c.result = []byte(`{"session_id":` + quote(s.name) + `,"tool_use_id":` + quote(*f.id) + `,"tool_id":` +
				rawText(o, "tool_id") + `,"name":` + nullable(c.asked.name) + `,"result":` + value + `,"latency_ms":` +
				rawText(o, "latency_ms") + `,"status":` + status + `,"total_tools":` + rawText(o, "total_tools") +
				`,"timestamp":` + rawText(o, "timestamp") + `}`)
		}
		p.complete(s)
		return
	}
	p.dead(r, "nobody waits for it")
}

func (p *reference) toolFailed(s *refSession, o object) {
	id := o.text("tool_use_id")
	if s.open == nil || s.open.thinking || id == nil {
		return
	}
	for _, c := range s.open.calls {
		if c.first == nil && c.asked.valid() && *c.asked.id == *id && c.result == nil {
			c.result = p.synthesised(s, c, "tool_failed")
			p.complete(s)
			return
		}
	}
}

// complete writes the set and the tool message once every call has its result, and asks on.
func (p *reference) complete(s *refSession) {
	t := s.open
	var results, entries, expected []string
	for _, c := range t.calls {
		if c.first != nil {
			c.result = c.first.result
		}
		if c.result == nil {
			return
		}
		r, _ := objectIn(c.result)
		results = append(results, string(c.result))
		entries = append(entries, `{"tool_use_id":`+rawText(r, "tool_use_id")+`,"name":`+nullable(c.asked.name)+`,"result":`+
			rawText(r, "result")+`,"status":`+rawText(r, "status")+`}`)
		expected = append(expected, `{"tool_use_id":`+nullable(c.asked.id)+`,"name":`+nullable(c.asked.name)+`}`)
	}
	switch n := len(entries); {
	case p.flaw == flawSwap && n > 1:
		entries[0], entries[1] = entries[1], entries[0]
	case p.flaw == flawLoseResult && n > 0:
		entries, results = entries[1:], results[1:]
	}
	now := quote(stamp(time.Now()))
	id := t.id + "/" + number(t.step)
	if p.flaw != flawNoSet {
		p.emit(p.names.AllComplete, s.name, id+"/complete/0", `{"session_id":`+quote(s.name)+`,"user_id":`+nullable(s.user)+
			`,"expected_count":`+number(len(expected))+`,"results":[`+strings.Join(results, ",")+`],"expected":[`+
			strings.Join(expected, ",")+`],"deadline_ms":1,"emitted":true,"timestamp":`+now+`,"complete":false}`)
	}
	message := `{"session_id":` + quote(s.name) + `,"user_id":` + nullable(s.user) + `,"role":"tool","content":[` +
		strings.Join(entries, ",") + `],"timestamp":` + now + `,"metadata":{"tool_results":[` + strings.Join(results, ",") +
		`],"tool_count":` + number(len(results)) + `,"source":"tool-execution"}}`
	p.emit(p.names.MessageInput, s.name, id+"/tools/0", message)
	if p.flaw == flawTwoMessages {
		p.emit(p.names.MessageInput, s.name, id+"/tools/1", message)
	}
	t.input, _ = objectOf([]byte(message))
	t.step++
	p.ask(s)
}

// tick fires deadlines.
func (p *reference) tick(s *refSession) {
	t := s.open
	if t == nil || time.Now().Before(t.deadline) {
		return
	}
	if t.thinking {
		p.end(s, t, "think_timeout")
		return
	}
	for _, c := range t.calls {
		if c.result == nil && c.first == nil {
			c.result = p.synthesised(s, c, "timeout")
		}
	}
	p.complete(s)
}
