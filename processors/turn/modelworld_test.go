package turn

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/rows"
)

// model is one session, the topics around it and the oracle that knows what must happen.
type model struct {
	*play
	oracle
	modelCase
	logs map[string][]*modelRecord
	next map[string]int // by topic, the offset that is handed over next
	// handed are the events of the session so far; checkpoints has an entry for each of them and one for the start.
	handed      []handedOver
	checkpoints []checkpoint
	// published are the outputs on the topics by ID. A crash takes none of them back.
	published map[string]publication
	raced     map[string]bool // turns whose outputs may differ after a crash
	refused   map[string]bool // turns of messages that no row has room to remember
	asked     []*askedStep    // by publication, repeated ones once
	ids       []issuedCall
	gates     []*requestedGate
	trace     []string
	peak      time.Time
	aged      bool // some of what is remembered is old
	op        int
	made      int
}

// modelRecord is a record of an input topic. meant is what its writer means by it: the oracle judges by that.
type modelRecord struct {
	topic  string
	event  event
	value  string
	offset int64
	meant  any
}

const deadlineTopic = "deadline"

type publication struct{ raw, text string }

func newModel(t tb, c modelCase) *model {
	m := &model{
		modelCase: c, logs: map[string][]*modelRecord{}, next: map[string]int{},
		published: map[string]publication{}, raced: map[string]bool{}, refused: map[string]bool{},
		play: newPlay(t, func(r *rules) {
			r.RouteTTL, r.QueueLimit, r.Delivery, r.Channels = 2*time.Hour, 4, c.Delivery, c.Channels
			r.BothSpellings = c.Seed%5 == 3
			switch c.Seed % 7 {
			case 3:
				r.MaxSteps = 2
			case 5:
				r.MaxCost = 3
			}
			switch c.Seed % 8 {
			case 2:
				r.HistoryLimit.Messages = 6
			case 6:
				r.HistoryLimit.Bytes = 2 << 10
			}
			if c.Reject {
				r.Policy = Reject
			}
			if c.Gates {
				r.Agent, r.Approval, r.SupersedeGates = agent, modelPolicy(), c.Seed%8 >= 6
			}
			if c.Small {
				r.RecordLimit, r.RowLimit = minRecord, minRecord-rowMargin
				if c.Seed%4 == 1 {
					r.RowLimit = minRecord // what a row has room for may be too large for a record
				}
			}
		}),
	}
	m.peak = m.now
	m.oracle = newOracle(m)
	m.checkpoints = []checkpoint{m.checkpoint()}
	return m
}

func (m *model) logf(format string, args ...any) {
	if !m.traced {
		return
	}
	m.trace = append(m.trace, short(fmt.Sprintf(format, args...)))
}

var padded = regexp.MustCompile("x{20,}")

// short is a text without its padding, and without the middle of long lines.
func short(text string) string {
	text = padded.ReplaceAllStringFunc(text, func(x string) string { return fmt.Sprintf("x{%d}", len(x)) })
	list := strings.Split(text, "\n")
	for i, l := range list {
		if len(l) > 700 {
			list[i] = l[:450] + " … " + l[len(l)-250:]
		}
	}
	return strings.Join(list, "\n")
}

// write appends a record to its topic.
func (m *model) write(topic, value string, meant any, opts ...recordOption) *modelRecord {
	m.tb.Helper()
	var raw []byte
	if value != "" {
		raw = []byte(value)
	}
	e, ok := m.event(topic, raw, opts...)
	if !ok {
		m.failf("the generator wrote poison: %s", value)
	}
	r := &modelRecord{topic: topic, event: e, value: value, offset: e.source().Offset, meant: meant}
	m.logs[topic] = append(m.logs[topic], r)
	return r
}

// again appends a record with the bytes and the headers of another one.
func (m *model) again(r *modelRecord) {
	m.tb.Helper()
	old := r.event.source()
	m.write(r.topic, r.value, r.meant, stamped(old.At), func(n *record) {
		n.Headers, n.Own = old.Headers, old.Own
		if old.Own {
			n.Cause = old.Cause
		}
	})
}

// pending are the topics with records that are not handed over yet, in a fixed order.
func (m *model) pending() (list []string) {
	for _, topic := range append(slices.Clone(inputs), "session-control", "gate-outcomes") {
		if m.next[topic] < len(m.logs[topic]) {
			list = append(list, topic)
		}
	}
	return list
}

// deliver hands over the next record of a topic.
func (m *model) deliver(topic string) {
	m.tb.Helper()
	r := m.logs[topic][m.next[topic]]
	m.next[topic]++
	m.hand(r)
}

func (m *model) drain(topic string) {
	m.tb.Helper()
	for m.next[topic] < len(m.logs[topic]) {
		m.deliver(topic)
	}
}

// hand applies an event, holds what came of it against the oracle, and keeps a checkpoint.
func (m *model) hand(r *modelRecord) {
	m.tb.Helper()
	if m.now.After(m.peak) {
		m.peak = m.now
	}
	m.handed = append(m.handed, handedOver{r, m.now})
	m.logf("%3d %s %s@%d %s%s", m.op, m.now.Format("02 15:04:05.000"), r.topic, r.offset, idOf(r), r.value)
	es := m.apply(r.event)
	for _, l := range es.letters() {
		m.logf("      dead letter: %s", l)
	}
	m.publish(es)
	m.judgeEvent(r, es)
	if size := m.size(); m.Small && size > m.rules.RowLimit {
		m.failf("the row has %d bytes, its limit is %d", size, m.rules.RowLimit)
	}
	m.checkpoints = append(m.checkpoints, m.checkpoint())
}

func idOf(r *modelRecord) string {
	if rec := r.event.source(); rec != nil && rec.Own {
		return "[" + rec.Cause + "] "
	}
	return ""
}

// fire hands over the row's deadline if one is due; early hands it over although it is not.
func (m *model) fire(early bool) bool {
	m.tb.Helper()
	ms, ok := rows.Deadline(m.row)
	if !ok || ms > m.now.UnixMilli() && !early {
		return false
	}
	m.hand(&modelRecord{topic: deadlineTopic, event: deadlineCame{Session: m.key}})
	return true
}

// publish puts outputs on their topics. Nothing is written twice with other bytes under one ID, and nothing over the
// limit of a record. The workers take note of what they are asked.
func (m *model) publish(es effects) {
	m.tb.Helper()
	for _, e := range es {
		out, ok := e.(emit)
		if !ok {
			continue
		}
		d, err := m.bind.encodeEmit(out)
		if err != nil {
			m.failf("%s cannot be encoded: %v", out.ID, err)
		}
		if size := len(d.raw) + 2*len(d.key) + len(d.id); size > m.rules.RecordLimit {
			m.failf("%s has %d bytes, the limit of a record is %d", out.ID, size, m.rules.RecordLimit)
		}
		now := publication{string(d.raw), say(out.Value)}
		before, repeated := m.published[out.ID]
		turn, step := turnOf(out.ID)
		if !m.raced[turn] && repeated && (m.exact && before.raw != now.raw || withoutRoute(before.text) != withoutRoute(now.text)) {
			m.failf("%s is written twice with different bytes:\n%s\n%s", out.ID, before.raw, now.raw)
		}
		m.published[out.ID] = now
		switch v := out.Value.(type) {
		case enriched:
			m.asked = slices.DeleteFunc(m.asked, func(a *askedStep) bool { return a.turn == turn && a.step == step })
			m.asked = append(m.asked, &askedStep{
				turn: turn, step: step, id: out.ID,
				history: slices.Clone(v.History), input: slices.Clone(v.LatestInput),
			})
		case gateRequested:
			m.requested(v)
		case called:
			m.judgeCall(out.ID, v)
			if !repeated {
				m.ids = append(m.ids, issuedCall{*v.ToolUseID, out.ID})
			}
		}
	}
}

// withoutRoute is an output without its route, which may have expired when the output is repeated later.
func withoutRoute(text string) string {
	text, _, _ = strings.Cut(text, ", to ")
	return text
}

func (m *model) failf(format string, args ...any) {
	m.tb.Helper()
	m.tb.Errorf("%s", short(fmt.Sprintf(format, args...)))
	m.tb.FailNow()
}

// turnOf takes an output's ID apart.
func turnOf(id string) (turn string, step int) {
	parts := strings.SplitN(id, "/", 3)
	_, _ = fmt.Sscan(parts[1], &step)
	return parts[0], step
}
