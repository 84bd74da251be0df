package wiretest

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Enriched is a record of enriched-message-input, decoded for a model worker.
type Enriched struct {
	Names   Names
	Record  *kgo.Record
	Session string
	User    *string
	Cost    *float64
	History []json.RawMessage
	// Latest is the message to answer, Role its role.
	Latest json.RawMessage
	Role   string
	// Plan is the turn's plan (zero if the conversation has none) and Step the number of responses before this one.
	Plan Plan
	Step int
	Time string
}

// Script is a model: it returns the records that answer a record, in order. The result depends on the record alone, so
// that a redelivered record gets the same answer.
type Script func(Enriched) []Reply

// Reply is a record to send, immediately or late.
type Reply struct {
	Record   Record
	Expected Sent
	Late     bool
}

func (d *Driver) answerStep(ctx context.Context, r *kgo.Record) error {
	e, ok := readEnriched(d.names, r)
	if !ok {
		return nil // the oracle reports what is wrong with it
	}
	if d.answered.isRepeat(r) {
		return nil
	}
	d.responses.Add(1)
	return d.reply(ctx, d.answered.withAnswerID(r, d.names, d.script(e)))
}

func (d *Driver) reply(ctx context.Context, replies []Reply) error {
	for _, p := range replies {
		if p.Late {
			if err := d.sendLate(ctx, p.Record, p.Expected); err != nil {
				return err
			}
			continue
		}
		if _, err := d.Send(ctx, p.Record, p.Expected); err != nil {
			return err
		}
	}
	return nil
}

func readEnriched(names Names, r *kgo.Record) (Enriched, bool) {
	o, err := objectOf(r.Value)
	if err != nil {
		return Enriched{}, false
	}
	latest, err := objectIn(o.raw("latest_input"))
	if err != nil {
		return Enriched{}, false
	}
	e := Enriched{
		Names: names, Record: r, Session: string(r.Key), User: o.text("user_id"), Cost: o.number("cost"),
		History: o.list("history"), Latest: o.raw("latest_input"),
	}
	if role := latest.text("role"); role != nil {
		e.Role = *role
	}
	if t := o.text("timestamp"); t != nil {
		e.Time = *t
	}
	e.Plan, e.Step = planOf(latest, e.Role, e.History)
	return e, true
}

// planOf finds the plan: in the user's message, or else in the last message of the model.
func planOf(latest object, role string, history []json.RawMessage) (Plan, int) {
	if role != "tool" {
		p, at, _ := parsePlan(planText(latest))
		return p, at + 1
	}
	for i := len(history) - 1; i >= 0; i-- {
		o, err := objectIn(history[i])
		if err != nil {
			continue
		}
		if p, at, ok := parsePlan(planText(o)); ok {
			return p, at + 1
		}
	}
	return Plan{}, 0
}

// planText returns the content of a message, or its first block of text.
func planText(message object) string {
	if s := message.text("content"); s != nil {
		return *s
	}
	for _, b := range message.list("content") {
		if o, err := objectIn(b); err == nil {
			if s := o.text("text"); s != nil {
				return *s
			}
		}
	}
	return ""
}

// largest is the maximum size of a response in bytes. Beyond it the model drops its history, as one that compacts does.
const largest = 900_000

// Planned is the model that follows the plan in the conversation. Without a plan it answers immediately.
func Planned(e Enriched) []Reply {
	p := e.Plan
	switch {
	case p.Has(QuirkSilence):
		return nil
	case p.Has(QuirkFail):
		return []Reply{failed(e, e.Record.Value, errorHeaders(e.Record, "scripted failure"))}
	case p.Has(QuirkFailText):
		v := `{"originalValue":` + quote(string(e.Record.Value)) + `,"error":"scripted failure"}`
		return []Reply{failed(e, []byte(v), nil)}
	}
	good := plannedResponse(e, "")
	var out []Reply
	if p.Has(QuirkGarbage) {
		malformed := Sent{Fate: FateDeadLetter, Case: "unreadable response"}
		out = append(out,
			thinkReply(e, []byte(`{}`), malformed), thinkReply(e, []byte(`{"session_id":`), malformed), thinkReply(e, []byte{}, malformed))
	}
	out = append(out, earlyResults(e, good.items)...)
	value := good.encode(p)
	if len(value) > largest {
		good.dropHistory()
		value = good.encode(p)
	}
	out = append(out, thinkReply(e, value, Sent{}))
	if p.Has(QuirkRepeat) {
		out = append(out, thinkReply(e, value, Sent{}))
	}
	if p.Has(QuirkRethink) {
		out = append(out, thinkReply(e, plannedResponse(e, "b").encode(p), Sent{}))
	}
	if p.Has(QuirkLateRepeat) {
		again := thinkReply(e, value, Sent{})
		again.Late = true
		out = append(out, again)
	}
	return out
}

func thinkReply(e Enriched, value []byte, expected Sent) Reply {
	return Reply{
		Record: Record{Topic: e.Names.Think, Key: e.Record.Key, Value: value, Partition: AtHome}, Expected: expected,
	}
}

func failed(e Enriched, value []byte, headers []kgo.RecordHeader) Reply {
	return Reply{
		Record:   Record{Topic: e.Names.ThinkDLQ, Key: e.Record.Key, Value: value, Headers: headers, Partition: AtHome},
		Expected: Sent{Fate: FateExplained, Case: "think failure"},
	}
}

// earlyResults returns results that are sent before the response with their calls.
func earlyResults(e Enriched, items []item) []Reply {
	var out []Reply
	for i, it := range items {
		if it.null || blank(it.id) || blank(it.name) || i >= e.Plan.Tools || e.Plan.Deed(e.Step, i) != DeedEarly {
			continue
		}
		r := result{
			session: e.Session, id: *it.id, name: *it.name, value: `{"value":` + quote("early "+*it.id) + `}`,
			status: "success", total: e.Plan.Tools, latency: 1 + i, time: e.Time,
		}
		out = append(out, Reply{Record: r.record(e.Names, e.Record.Key)})
	}
	return out
}

func number(n int) string { return strconv.Itoa(n) }
