package turn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/topics"
)

// The generator chooses what happens. Every move draws from a source of its own, so that a history without some of its
// moves stays much like the whole one: this is what makes a failure shrinkable.
type generator struct {
	*model
	*rand.Rand
}

type weighted struct {
	weight int
	move   func()
}

// move makes the n-th move of a history.
func (m *model) move(n int) {
	m.tb.Helper()
	g := generator{m, rand.New(rand.NewPCG(m.Seed, uint64(n)))}
	m.op, m.made = n, 0
	m.now = m.now.Add(time.Millisecond)
	if pending := m.pending(); len(pending) > 0 && g.IntN(3) == 0 {
		m.deliver(pending[g.IntN(len(pending))])
	}
	if m.Gates && g.IntN(6) == 0 {
		g.decide()
		return
	}
	g.choose([]weighted{
		{18, g.message},
		{20, g.respond},
		{6, g.stale},
		{14, g.answerCall},
		{3, g.answerAll},
		{9, g.route},
		{3, g.withdraw},
		{3, g.control},
		{8, g.time},
		{2, g.forgetConversation},
		{9, g.repeat},
		{4, g.deliverSome},
		{1, m.restart},
		{1, g.readBack},
		{3, g.crash},
	})
}

func (g generator) choose(list []weighted) {
	total := 0
	for _, w := range list {
		total += w.weight
	}
	at := g.IntN(total)
	for _, w := range list {
		if at -= w.weight; at < 0 {
			w.move()
			return
		}
	}
}

// chance is true once in n times.
func (g generator) chance(n int) bool { return g.IntN(n) == 0 }

// name is a text that the history has once.
func (g generator) name() string {
	g.made++
	return fmt.Sprintf("%d.%d", g.op, g.made)
}

// say writes a record, which mostly is handed over at once.
func (g generator) say(topic, value string, meant any, opts ...recordOption) {
	g.tb.Helper()
	g.write(topic, value, meant, opts...)
	if !g.chance(6) {
		g.drain(topic)
	}
}

// stamp is a record's timestamp: now and then its producer had no clock.
func (g generator) stamp() time.Time {
	if g.chance(20) {
		return time.UnixMilli(-1)
	}
	return g.now.Add(time.Duration(g.IntN(600)-300) * time.Second)
}

func (g generator) message() {
	m, role, metadata, at := meantMessage{}, `"user"`, "null", g.stamp()
	switch k := g.IntN(20); {
	case k < 9:
		m.request = fmt.Sprint("r", g.IntN(40))
		metadata = fmt.Sprintf(`{"request_id":%q}`, m.request)
	case k == 9:
		m.request = fmt.Sprint(g.IntN(5))
		metadata = `{"request_id":` + m.request + `}`
	case k == 10:
		metadata = `{"request_id":null}`
	case k == 11:
		metadata = `{"request_id":" "}`
	case k == 12:
		metadata, m.fault = `{"request_id":{"no":"id"}}`, true
	case k == 13:
		role = "null" // counts as the user's
	}
	if g.Channels && !g.chance(3) {
		m.meantChannel, metadata = g.channel(metadata)
		m.fault = m.fault || m.invalid
	}
	m.stamp = at.UnixMilli()
	if m.stamp < 0 {
		m.stamp = latest
	}
	opts := []recordOption{stamped(at)}
	name := g.name()
	if g.chance(5) {
		opts = append(opts, header(topics.HeaderID, "door/"+name))
	}
	padding := g.padding(100)
	if g.Small && g.chance(15) {
		padding = strings.Repeat("x", 100_000) // with a history it does not fit into a record
	}
	g.say("message-input", fmt.Sprintf(`{"session_id":"s1","user_id":"mira","role":%s,"content":"q%s é 🙂 %s","timestamp":"t","metadata":%s}`,
		role, name, padding, metadata), m, opts...)
}

func (g generator) route() {
	if len(g.named)+len(g.unnamed) > 30 {
		return
	}
	at := g.stamp()
	m, value := meantRoute{stamp: max(at.UnixMilli(), 0)}, fmt.Sprintf(`{"to":%q,"bearerToken":"t"`, g.name())
	if g.chance(2) {
		m.request = fmt.Sprint("r", g.IntN(40))
		value += fmt.Sprintf(`,"request_id":%q`, m.request)
	}
	g.say("reply-to", value+"}", m, stamped(at))
}

func (g generator) withdraw() {
	if g.chance(3) {
		g.say("reply-to", "", meantTombstone{}, header(topics.HeaderID, "delivered/"+g.name()))
		return
	}
	g.say("reply-to", "", meantTombstone{})
}

func (g generator) control() {
	m, value := meantControl{}, `{"action":"cancel"}`
	switch k := g.IntN(8); {
	case k == 0:
		m.purge, value = true, `{"action":"purge"}`
	case k > 2:
		m.request = fmt.Sprint("r", g.IntN(40))
		if len(g.unfinished) > 0 && !g.chance(3) {
			m.request = g.unfinished[g.IntN(len(g.unfinished))].request
		}
		if m.request != "" {
			value = fmt.Sprintf(`{"action":"cancel","request_id":%q}`, m.request)
		}
	}
	g.say("session-control", value, m)
}

func (g generator) forgetConversation() { g.say("think-request-response", "", meantTombstone{}) }

// time moves the clock. It goes back by an hour at most. It waits while a record is held for a step to come: after a
// crash the records that open the step come soon.
func (g generator) time() {
	if slices.ContainsFunc(g.held, func(h heldRecord) bool { return h.named }) && len(g.pending()) > 0 {
		g.deliverSome()
		return
	}
	switch k := g.IntN(25); {
	case k < 4:
		g.fire(true)
		return
	case k < 8:
		back := g.now.Add(-time.Duration(g.IntN(60)) * time.Minute)
		if g.peak.Sub(back) < time.Hour && !g.aged {
			g.now = back
		}
	case k < 13:
		g.now = g.now.Add(time.Duration(g.IntN(120)) * time.Second)
	case k == 13:
		g.now = g.now.Add(3 * time.Hour)
	case k < 16:
		if len(g.pending()) > 0 {
			return
		}
		// Request IDs are remembered for a day. No crash goes back as far, no record comes again as late, and the clock
		// does not go back behind it: what was forgotten would be known again.
		g.now, g.aged = g.now.Add(time.Duration(k-13)*13*time.Hour), true
		g.handed, g.checkpoints = nil, []checkpoint{g.checkpoint()}
		g.model.asked = slices.DeleteFunc(g.model.asked, func(a *askedStep) bool { return g.known.has("finished/"+a.turn, 0) })
	default:
		if ms, ok := rows.Deadline(g.row); ok && ms < g.now.Add(3*time.Hour).UnixMilli() {
			g.now = time.UnixMilli(max(ms, g.now.UnixMilli())).UTC()
			g.fire(false)
		}
		return
	}
	if !g.chance(4) {
		g.fire(false)
	}
}

// repeat hands a record over again at its offset, or writes its bytes to another one.
func (g generator) repeat() {
	if len(g.handed) == 0 {
		return
	}
	last := 50
	if g.Small {
		last = 30 // a small row forgets older records where it has no room
	}
	r := g.handed[max(0, len(g.handed)-last)+g.IntN(min(len(g.handed), last))].record
	if r.topic == deadlineTopic {
		return
	}
	cause := "cause/" + r.topic + "/" + r.event.source().Cause
	known := g.remembers(cause)
	switch {
	case known && g.chance(2):
		g.logf("%3d again", g.op)
		g.hand(r)
	case !known && g.known.has(cause, 0) && r.event.source().Own:
		// Its ID is forgotten: it would be another message with the same ID.
	case r.topic != "reply-to" || len(g.unnamed) < 30:
		g.again(r)
		g.drain(r.topic)
	}
}

func (g generator) deliverSome() {
	for range g.IntN(20) {
		if pending := g.pending(); len(pending) > 0 {
			g.deliver(pending[g.IntN(len(pending))])
		}
	}
}

// readBack is what the turn itself writes to topics that it reads, and what pretends to be that.
func (g generator) readBack() {
	tool := `{"session_id":"s1","role":"tool","content":[{"tool_use_id":"call_0","name":"look","result":{},"status":"success"}],"timestamp":"t"}`
	switch g.IntN(3) {
	case 0:
		g.say("message-input", tool, meantMessage{tool: true})
	case 1:
		g.say("message-input", tool, meantMessage{tool: true}, header(topics.HeaderID, "own/"+g.name()))
	case 2:
		g.say("tool-use-dlq", `{"tool_use_id":"call_0","name":null}`, meantIgnored{}, header(topics.HeaderID, "own/"+g.name()))
	}
}

// crash ends the process. How much of its work is lost depends on the case.
func (g generator) crash() {
	n, offsets := 1+g.IntN(12), 0
	if g.chance(8) && !g.Small {
		n = 1 + g.IntN(60)
	}
	n = min(n, len(g.checkpoints)-1)
	if g.chance(2) {
		offsets = g.IntN(6)
	}
	switch g.Crashes {
	case rowsSurvive:
		g.restart()
	case sameOrder:
		later := time.Duration(g.IntN(2)*1500) * time.Millisecond
		if g.Small {
			later = 0 // what a full row has room for depends on what has expired
		}
		g.replay(n, offsets, later)
	case anyOrder:
		g.rollBack(n, offsets)
		g.race()
		g.now = g.now.Add(1500 * time.Millisecond)
		g.deliverSome()
	}
}
