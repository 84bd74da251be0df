package wiretest

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Call is a record of tool-use, decoded for a tool worker.
type Call struct {
	Names   Names
	Record  *kgo.Record
	Session string
	ID      string
	Name    string
	Total   int
	// Deed, Key and Number are from the input, where the planned model wrote them.
	Deed   Deed
	Key    string
	Number int
}

// ToolScript is a tool worker: it returns the records that answer a call, in order. The result depends on the call alone.
type ToolScript func(Call) []Reply

func (d *Driver) answerCall(ctx context.Context, r *kgo.Record) error {
	c, ok := readCall(d.names, r)
	if !ok {
		return nil // the oracle reports what is wrong with it
	}
	if d.answered.isRepeat(r) {
		return nil
	}
	d.results.Add(1)
	return d.reply(ctx, d.answered.withAnswerID(r, d.names, d.tool(c)))
}

func readCall(names Names, r *kgo.Record) (Call, bool) {
	o, err := objectOf(r.Value)
	if err != nil {
		return Call{}, false
	}
	id, name := o.text("tool_use_id"), o.text("name")
	if id == nil || name == nil {
		return Call{}, false
	}
	c := Call{Names: names, Record: r, Session: string(r.Key), ID: *id, Name: *name, Deed: DeedOK}
	if n := o.number("total_tools"); n != nil {
		c.Total = int(*n)
	}
	if input, err := objectIn(o.raw("input")); err == nil {
		if s := input.text("deed"); s != nil {
			c.Deed = Deed(*s)
		}
		if s := input.text("key"); s != nil {
			c.Key = *s
		}
		if n := input.number("call"); n != nil {
			c.Number = int(*n)
		}
	}
	return c, true
}

// result is a record of tool-use-result to be written.
type result struct {
	session, id, name string
	value             string // JSON
	status            string
	total, latency    int
	time              string
	toolID            bool // as the callback of the chat API writes it
	spaced            bool // as Python's json.dumps writes it
}

func (r result) encode() []byte {
	colon, comma := ":", ","
	if r.spaced {
		colon, comma = ": ", ", "
	}
	fields := []string{`"session_id"` + colon + quote(r.session), `"tool_use_id"` + colon + quote(r.id)}
	if r.toolID {
		fields = append(fields, `"tool_id"`+colon+quote(r.name))
	}
	fields = append(
		fields, `"name"`+colon+quote(r.name), `"result"`+colon+r.value, `"latency_ms"`+colon+number(r.latency),
		`"status"`+colon+quote(r.status), `"total_tools"`+colon+number(r.total), `"timestamp"`+colon+quote(r.time))
	return []byte("{" + strings.Join(fields, comma) + "}")
}

func (r result) record(n Names, key []byte) Record {
	return Record{Topic: n.ToolUseResult, Key: key, Value: r.encode(), Partition: AtHome}
}

// Dealt is the tool worker that follows the deed in the call's input. Without a deed it succeeds.
func Dealt(c Call) []Reply {
	good := result{
		session: c.Session, id: c.ID, name: c.Name, status: "success", total: c.Total, latency: 10 + c.Number,
		value:  `{"value":` + quote(c.ID+" of "+c.Key) + `,"z":1.10,"big":12345678901234567890,"a":"<&>","n":null}`,
		time:   c.Record.Timestamp.UTC().Format("2006-01-02T15:04:05.000000+00:00"),
		toolID: pickNumber(2, c.ID) == 0, spaced: pickNumber(3, c.ID) == 0,
	}
	one := func(r result) []Reply { return []Reply{{Record: r.record(c.Names, c.Record.Key)}} }
	switch c.Deed {
	case DeedMissing:
		return nil
	case DeedFail:
		return []Reply{{
			Record: Record{
				Topic: c.Names.ToolUseDLQ, Key: c.Record.Key, Value: c.Record.Value,
				Headers: errorHeaders(c.Record, "scripted failure"), Partition: AtHome,
			},
			Expected: Sent{Fate: FateExplained, Case: "tool failure"},
		}}
	case DeedTwice:
		return append(one(good), one(good)...)
	case DeedAgain:
		other := good
		other.latency, other.value = 99, `{"value":"another"}`
		return append(one(good), one(other)...)
	case DeedLate:
		out := append(one(good), one(good)...)
		out[1].Late = true
		return out
	case DeedForeign:
		alien := good
		alien.id = "alien_" + c.ID
		out := append(one(alien), one(good)...)
		out[0].Expected = Sent{Fate: FateDeadLetter, Case: "foreign result"}
		return out
	case DeedElsewhere:
		out := one(good)
		out[0].Record.Partition = Elsewhere
		return out
	case DeedJunk:
		return append(junkReplies(c, good), one(good)...)
	default:
		return one(good.changedBy(c.Deed))
	}
}

// changedBy returns the result as changed by a deed that needs no second record.
func (r result) changedBy(d Deed) result {
	switch d {
	case DeedError:
		r.status, r.value = "error", `{"message":"scripted error","key":`+quote(r.id)+`}`
	case DeedText:
		r.value = quote("plain text of " + r.id)
	case DeedList:
		r.value = `[1,null,` + quote(r.id) + `]`
	case DeedNumber:
		r.value = "17.50"
	case DeedNull:
		r.value = "null"
	case DeedLong:
		r.value = `{"value":` + quote(r.id) + `,"bulk":"` + strings.Repeat("0123456789", 300) + `"}`
	case DeedHuge:
		r.value = `{"value":` + quote(r.id) + `,"bulk":"` + strings.Repeat("0123456789", 70_000) + `"}`
	case DeedCount:
		r.total = 1
	case DeedNames:
		r.session, r.name, r.toolID = "somebody-else", "another_name", false
	}
	return r
}

// junkReplies returns invalid records about a call, none of which may have an effect.
func junkReplies(c Call, good result) []Reply {
	topic := c.Names.ToolUseResult
	dead := func(kind string, key, value []byte) Reply {
		return Reply{
			Record:   Record{Topic: topic, Key: key, Value: value, Partition: AtHome},
			Expected: Sent{Fate: FateDeadLetter, Case: kind},
		}
	}
	unnamed := good
	unnamed.id = ""
	key := c.Record.Key
	return []Reply{
		dead("result without id", key, unnamed.encode()),
		dead("result under null key", nil, good.encode()),
		dead("result under another session", []byte(string(key)+"-not"), good.encode()),
		dead("cut result", key, good.encode()[:40]),
		dead("empty object", key, []byte("{}")),
	}
}
