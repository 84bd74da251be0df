package wiretest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func rawText(o object, name string) string {
	if v := o[name]; len(v) > 0 {
		return string(v)
	}
	return "null"
}

// messageText writes the six fields of a message.
func messageText(o object) string {
	return `{"session_id":` + rawText(o, "session_id") + `,"user_id":` + rawText(o, "user_id") + `,"role":` +
		rawText(o, "role") + `,"content":` + rawText(o, "content") + `,"timestamp":` + rawText(o, "timestamp") +
		`,"metadata":` + rawText(o, "metadata") + `}`
}

func (p *reference) open(s *refSession) {
	t := s.open
	t.input = t.message
	t.base = s.history
	if u := t.message.text("user_id"); !blank(u) {
		s.user = u
	}
	p.ask(s)
}

// ask writes the enriched record of the open step.
func (p *reference) ask(s *refSession) {
	t := s.open
	t.thinking, t.calls = true, nil
	t.deadline = time.Now().Add(p.thinkTimeout)
	history := t.base
	switch {
	case p.flaw == flawHistory && len(history) > 1:
		history = history[1:]
	case p.flaw == flawHistoryBytes && len(history) > 0:
		first := []byte(strings.Replace(string(history[0]), `"role":`, `"role": `, 1) + " ")
		if o, err := objectIn(history[0]); err == nil {
			delete(o, "timestamp")
			first = []byte(messageText(o))
		}
		history = append([]json.RawMessage{first}, history[1:]...)
	}
	texts := make([]string, len(history))
	for i, m := range history {
		texts[i] = string(m)
	}
	cost := "null"
	if s.cost != nil {
		cost = decimal(*s.cost)
		if p.flaw == flawCost {
			cost = decimal(*s.cost + 1)
		}
	}
	blanks := ""
	if p.flaw == flawBlanks {
		blanks = " "
	}
	value := `{"session_id":` + blanks + quote(s.name) + `,"user_id":` +
		nullable(s.user) + `,"cost":` + cost + `,"history":[` + strings.Join(texts, ",") +
		`],"latest_input":` + messageText(t.input) +
		`,"memoir_context":null,"timestamp":` + quote(stamp(time.Now())) + `}`
	if len(value) > 1_000_000 {
		p.end(s, t, "too_large")
		return
	}
	p.emit(p.names.Enriched, s.name, t.id+"/"+number(t.step)+"/enriched/0", value)
}

// thought handles a response.
func (p *reference) thought(s *refSession, r *kgo.Record, o object) {
	f := readThinkResponse(r)
	t := s.open
	fits := t != nil && t.thinking && f.hasFields && !s.accepted[f.bytes] && r.Partition == partitionOf(r.Key, p.counts[r.Topic])
	if p.flaw == flawAcceptAgain {
		fits = t != nil && t.thinking && f.hasFields
	} else if fits && f.echo != nil && *f.echo != inputOf(t.input) && s.steps[*f.echo] {
		fits = false
	}
	malformed := false
	for _, list := range []string{"previous_messages", "previousMessages", "tool_uses", "toolUses"} {
		if v := o.raw(list); v != nil && v[0] != '[' {
			malformed = true
		}
	}
	if !fits || malformed {
		p.dead(r, "no step waits for it")
		return
	}
	if !f.asksForTools() && !f.end {
		return
	}
	s.accepted[f.bytes] = true
	s.steps[inputOf(t.input)] = true
	t.thinking = false
	t.base = nil
	lists := [][]json.RawMessage{o.list("previous_messages", "previousMessages")}
	if m := o.raw("last_input_message", "lastInputMessage"); m != nil {
		lists = append(lists, []json.RawMessage{m})
	}
	lists = append(lists, o.list("last_input_response", "lastInputResponse", "messages"))
	for _, list := range lists {
		for _, m := range list {
			if !isNull(m) {
				t.base = append(t.base, m)
			}
		}
	}
	s.cost = f.total
	if f.asksForTools() {
		p.dispatch(s, o)
		return
	}
	text, agent := answerOf(o.list("last_input_response", "lastInputResponse", "messages"))
	if text == "" {
		p.end(s, t, "empty_response")
		return
	}
	p.answered(s, t, f, text, agent)
}

func answerOf(said []json.RawMessage) (text, agent string) {
	var texts []string
	_, agent = assembled(said)
	for _, m := range said {
		o, err := objectIn(m)
		if err != nil || o.text("role") == nil || *o.text("role") != "assistant" {
			continue
		}
		if c := planText(o); strings.TrimSpace(c) != "" {
			texts = append(texts, c)
		}
	}
	return strings.Join(texts, "\n\n"), agent
}

func (p *reference) answered(s *refSession, t *refTurn, f thinkResponse, text, agent string) {
	if p.flaw == flawText {
		text += "!"
	}
	user, cost := "", ""
	if f.user != nil {
		user = `,"user_id":` + quote(*f.user)
	}
	if p.flaw == flawNulls {
		user = `,"user_id":null`
	}
	if f.total != nil {
		cost = `,"cost":` + decimal(*f.total)
	}
	s.history = t.base
	p.finish(s, t, `{"session_id":`+quote(s.name)+user+`,"content":`+quote(text)+`,"input_tokens":`+number(int(f.input))+
		`,"output_tokens":`+number(int(f.output))+cost+`,"source_agent":`+quote(agent)+p.tail(s, t)+`}`)
}

// tail is reply_to, timestamp and request_id.
func (p *reference) tail(s *refSession, t *refTurn) string {
	route := t.route
	if t.request != "" {
		route = s.routes[t.request]
	}
	if t.request == "" && route != nil {
		s.used++
	}
	if p.flaw == flawRoute {
		route = nil
	}
	out := ""
	if route != nil {
		out = `,"reply_to":` + string(route)
	}
	out += `,"timestamp":` + quote(stamp(time.Now()))
	if t.request != "" && p.flaw != flawRequest {
		out += `,"request_id":` + quote(t.request)
	}
	return out
}

// end ends a turn in an error.
func (p *reference) end(s *refSession, t *refTurn, code string) {
	if p.flaw == flawCode {
		code = "oops"
	}
	p.finish(s, t, `{"session_id":`+quote(s.name)+
		`,"content":"it failed","input_tokens":0,"output_tokens":0,"source_agent":"agent-1"`+
		p.tail(s, t)+`,"status":"error","error":{"code":`+quote(code)+`,"message":"it failed"}}`)
}

func (p *reference) finish(s *refSession, t *refTurn, value string) {
	for _, r := range t.held {
		p.dead(r, "turn ended")
	}
	s.steps[inputOf(t.input)] = true
	id := t.id + "/" + number(t.step) + "/output/0"
	for range p.times(flawDrop, 0) {
		if p.flaw == flawWrongPartition {
			p.emit(p.names.MessageOutput, s.name+"x", id, value)
			continue
		}
		if p.flaw == flawNoHeader {
			id = ""
		}
		p.emit(p.names.MessageOutput, s.name, id, value)
	}
	switch p.flaw {
	case flawOtherID:
		p.emit(p.names.MessageOutput, s.name, t.id+"x/0/output/0", value)
	case flawTwice:
		p.emit(p.names.MessageOutput, s.name, t.id+"/99/output/0", value)
	case flawRepeatBytes:
		p.emit(p.names.MessageOutput, s.name, id, strings.Replace(value, `"source_agent":"`, `"source_agent":"x`, 1))
	case flawRepeat:
		p.emit(p.names.MessageOutput, s.name, id, value)
	}
	if i := slices.Index(s.queue, t); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		return
	}
	if s.open != t {
		return // refused at once
	}
	s.open = nil
	if len(s.queue) > 0 {
		s.open, s.queue = s.queue[0], s.queue[1:]
		if len(s.open.base) == 0 && s.open.step == 0 && !s.open.thinking {
			p.open(s)
		}
	}
}

// times is 1, or n with the flaw.
func (p *reference) times(f flaw, n int) int {
	if p.flaw == f {
		return n
	}
	return 1
}
