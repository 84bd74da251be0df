package fold

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

const helloMessages = `[{"role":"assistant","content":"Hello"}]`

// begin plays a start and two deltas.
func (p *play) begin(turn string) {
	p.handle(eventRecord(p.tb, turn, 1, startEvent("m")))
	p.handle(eventRecord(p.tb, turn, 2, deltaEvent("m", "Hel")))
	p.handle(eventRecord(p.tb, turn, 3, deltaEvent("m", "lo")))
}

func TestTerminalRecordClosesTheTurnWithItsStopReason(t *testing.T) {
	p := newPlay(t)
	p.begin("t")
	require.Empty(t, p.handle(eventRecord(t, "t", 4, plainDone)).batches(), "the reason is still to come")
	p.handle(terminalRecord(t, "t", 5, okResult("end_turn")))
	b := p.only("t")
	require.Equal(t, helloMessages+` "end_turn" null`, contents(b))
	require.Equal(t, "complete", outcomeOf(b))
	require.EqualValues(t, 5, b.Seq)
	require.Len(t, p.parts, 1, "only the memory is left")
	p.settle()
}

func TestRecordsAfterTheBatchChangeNothing(t *testing.T) {
	p := newPlay(t)
	p.begin("t")
	p.handle(eventRecord(t, "t", 4, doneWith("paused")))
	p.handle(terminalRecord(t, "t", 5, okResult("paused")))
	row := p.row
	for _, in := range append(p.past, eventRecord(t, "t", 6, plainDone), terminalRecord(t, "t", 9, okResult("x"))) {
		require.Empty(t, p.handle(in))
		require.Equal(t, row, p.row)
	}
}

func TestCorrectiveDoneClosesTheTurn(t *testing.T) {
	p := newPlay(t)
	p.begin("t")
	p.handle(eventRecord(t, "t", 4, plainDone))
	require.Empty(t, p.handle(eventRecord(t, "t", 5, plainDone)).batches(), "a replayed plain one does not")
	require.Len(t, p.handle(eventRecord(t, "t", 6, doneWith("end_turn"))).batches(), 1)
	require.Equal(t, helloMessages+` "end_turn" null`, contents(p.only("t")))
	require.Empty(t, p.handle(eventRecord(t, "t", 7, plainDone)))
	require.EqualValues(t, 6, p.only("t").Seq)
}

func TestDoneWithoutATerminalRecordClosesAfterItsGrace(t *testing.T) {
	for _, c := range []struct{ name, before, done, want, stop string }{
		{"plain", "", plainDone, "complete", "null"},
		{"with a reason", "", doneWith("max_tokens"), "complete", `"max_tokens"`},
		{"cancelled", "", doneWith("cancelled"), "cancelled cancelled", `"cancelled"`},
		{"after an error", `{"type":"error","data":{"message":"no"}}`, plainDone, "failed run_failed", "null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			p.begin("t")
			seq := int64(4)
			if c.before != "" {
				p.handle(eventRecord(t, "t", seq, c.before))
				seq++
			}
			p.handle(eventRecord(t, "t", seq, c.done))
			require.Empty(t, p.until(p.config.Grace-time.Millisecond).batches())
			require.Len(t, p.until(time.Millisecond).batches(), 1)
			require.Equal(t, c.want, outcomeOf(p.only("t")))
			require.Equal(t, c.stop, p.only("t").StopReason.String())
		})
	}
}

func TestTerminalRecordDeterminesTheState(t *testing.T) {
	text := "out of memory"
	for _, c := range []struct {
		name   string
		result topics.AgentResult
		want   string
	}{
		{"ok", topics.AgentResult{OK: true}, "complete"},
		{"failed", topics.AgentResult{Error: &text}, "failed run_failed"},
		{"cancelled", okResult("cancelled"), "cancelled cancelled"},
		{"failed though cancelled", topics.AgentResult{StopReason: okResult("cancelled").StopReason}, "failed run_failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			p.begin("t")
			p.handle(terminalRecord(t, "t", 4, c.result))
			b := p.only("t")
			require.Equal(t, c.want, outcomeOf(b))
			require.Equal(t, helloMessages, b.Messages.String(), "what came before a failure is kept")
			require.Equal(t, c.result.Error, b.Error)
		})
	}
}

func TestUsageOfTheTerminalRecordCounts(t *testing.T) {
	p := newPlay(t)
	p.handle(eventRecord(t, "t", 1, `{"type":"usage","data":{"input":1,"total":1}}`))
	r := okResult("end_turn")
	r.Usage = topics.Raw(`{"input":7,"cost":0.5}`)
	p.handle(terminalRecord(t, "t", 2, r))
	require.Equal(t, `{"input":7,"cost":0.5}`, p.only("t").Usage.String())
}

func TestRecordsAfterAMissingOneAreHeld(t *testing.T) {
	p := newPlay(t)
	p.handle(eventRecord(t, "t", 3, deltaEvent("m", "lo")))
	p.handle(eventRecord(t, "t", 2, deltaEvent("m", "Hel")))
	require.Empty(t, p.handle(eventRecord(t, "t", 3, deltaEvent("m", "repeat"))))
	p.handle(eventRecord(t, "t", 1, startEvent("m")))
	p.handle(terminalRecord(t, "t", 4, okResult("end_turn")))
	require.Equal(t, helloMessages+` "end_turn" null`, contents(p.only("t")))
	p.settle()
}

func TestGapEndsTheTurnWithTheEarlierEvents(t *testing.T) {
	narrow := func(c *Config) { c.WindowCount = 3 }
	light := func(c *Config) { c.WindowBytes = 100 }
	after := func(n int) func(p *play) {
		return func(p *play) {
			for i := range n {
				p.handle(eventRecord(p.tb, "t", int64(5+i), deltaEvent("m", "!")))
			}
		}
	}
	for _, c := range []struct {
		name string
		rule func(*Config)
		then func(p *play)
	}{
		{"at the terminal record", nil, func(p *play) { p.handle(terminalRecord(p.tb, "t", 5, okResult("end_turn"))) }},
		{"at the terminal record, behind held ones", nil, func(p *play) {
			after(1)(p)
			p.handle(terminalRecord(p.tb, "t", 6, okResult("end_turn")))
		}},
		{"when the window is full", narrow, after(4)},
		{"when the window has too many bytes", light, after(2)},
		{"after 30 s", nil, func(p *play) {
			after(1)(p)
			require.Empty(p.tb, p.until(30*time.Second-time.Millisecond).batches())
			p.until(time.Millisecond)
		}},
		{"after 30 s, whatever comes meanwhile", nil, func(p *play) {
			for i := range 7 {
				p.handle(eventRecord(p.tb, "t", int64(5+i), deltaEvent("m", "!")))
				p.until(5 * time.Second)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := c.rule
			if rule == nil {
				rule = func(*Config) {}
			}
			p := newPlay(t, rule)
			p.begin("t")
			c.then(p)
			b := p.only("t")
			require.Equal(t, "failed gap", outcomeOf(b))
			require.Equal(t, helloMessages+" null null", contents(b))
			require.EqualValues(t, 3, b.Seq)
			p.settle()
		})
	}
}

func TestEachGapHasItsOwnTimeout(t *testing.T) {
	p := newPlay(t)
	p.begin("t")
	p.handle(eventRecord(t, "t", 5, deltaEvent("m", "b")))
	p.handle(eventRecord(t, "t", 7, deltaEvent("m", "d")))
	p.until(20 * time.Second)
	p.handle(eventRecord(t, "t", 4, deltaEvent("m", "a")))
	require.Empty(t, p.until(29*time.Second).batches())
	p.handle(eventRecord(t, "t", 6, deltaEvent("m", "c")))
	require.Empty(t, p.until(time.Minute).batches(), "nothing is missing")
	p.handle(terminalRecord(t, "t", 8, okResult("end_turn")))
	require.Equal(t, `[{"role":"assistant","content":"Helloabcd"}]`, p.only("t").Messages.String())
}

func TestNewerAttemptDropsTheOlder(t *testing.T) {
	p := newPlay(t)
	p.begin("t")
	for i := range 100 {
		p.handle(eventRecord(t, "t", int64(4+i), deltaEvent("m", "a text of some length")))
	}
	p.handle(eventRecord(t, "t", 200, deltaEvent("m", "held")))
	at := func(attempt, seq int64, event string) input {
		return streamRecord(t, topics.AgentEvent{TurnID: "t", Attempt: attempt, Seq: seq, Event: topics.Raw(event)})
	}
	p.handle(at(2, 1, startEvent("m")))
	require.Empty(t, p.parts)
	require.Empty(t, p.handle(eventRecord(t, "t", 104, deltaEvent("m", "late"))), "the older one is fenced")
	require.Empty(t, p.handle(terminalRecord(t, "t", 105, okResult("late"))))
	p.handle(at(2, 2, deltaEvent("m", "Hello")))
	p.handle(streamRecord(t, topics.AgentEvent{TurnID: "t", Attempt: 2, Seq: 3, Result: &topics.AgentResult{OK: true}}))
	b := p.only("t")
	require.Equal(t, helloMessages, b.Messages.String())
	require.EqualValues(t, 2, b.Attempt)
	late := p.handle(at(3, 1, startEvent("m")))
	require.Equal(t, []string{reasonClosed}, late.letters(), "data that is too late is not lost")
	require.Empty(t, p.handle(at(2, 1, startEvent("m"))))
	p.settle()
}

func TestUserRecordsAreNotFolded(t *testing.T) {
	p := newPlay(t)
	user := func(turn string, seq int64) input {
		return streamRecord(t, topics.AgentEvent{
			TurnID: turn, Seq: seq, Author: topics.AuthorUser, Event: topics.Raw(`{"type":"message","data":{"text":"mine"}}`),
		})
	}
	require.Empty(t, p.handle(user("t", 0)))
	require.Nil(t, p.row, "outside the numbering it opens nothing")
	p.handle(user("t", 1))
	p.handle(eventRecord(t, "t", 2, startEvent("m")))
	p.handle(user("t", 4))
	p.handle(eventRecord(t, "t", 3, deltaEvent("m", "Hello")))
	p.handle(streamRecord(t, topics.AgentEvent{TurnID: "t", Seq: 5, Author: "agent", Event: topics.Raw(plainDone)}))
	p.handle(terminalRecord(t, "t", 6, okResult("end_turn")))
	require.Equal(t, helloMessages+` "end_turn" null`, contents(p.only("t")))
}

func TestSilentTurnExpiresWithItsEvents(t *testing.T) {
	p := newPlay(t)
	p.begin("t")
	require.Empty(t, p.until(29*time.Minute).batches())
	p.handle(eventRecord(t, "t", 4, deltaEvent("m", "!")))
	require.Empty(t, p.until(29*time.Minute).batches())
	p.until(time.Minute)
	b := p.only("t")
	require.Equal(t, "expired silence", outcomeOf(b))
	require.Equal(t, `[{"role":"assistant","content":"Hello!"}]`, b.Messages.String())
}

func TestControlCancelsOpenTurns(t *testing.T) {
	p := newPlay(t)
	id := "a"
	cancel := controlReceived{record("1"), topics.Control{Action: topics.ActionCancel, RequestID: &id}}
	all := controlReceived{record("2"), topics.Control{Action: topics.ActionPurge}}
	p.begin("a")
	p.begin("b")
	p.handle(cancel)
	require.Equal(t, "cancelled cancelled", outcomeOf(p.only("a")))
	require.Len(t, p.batches, 1)
	p.handle(all)
	require.Equal(t, helloMessages, p.only("b").Messages.String())
	p.begin("c")
	require.Empty(t, p.handle(all), "a repeat does not cancel what came after it")
	require.Empty(t, p.handle(controlReceived{Record: &machine.Record{}}))
}

func TestInvalidRecordIsDeadLetteredAndNoOtherIsLost(t *testing.T) {
	p := newPlay(t)
	require.Equal(t, []string{reasonTombstone}, p.handle(eventReceived{Record: &machine.Record{}}).letters())
	long := streamRecord(t, topics.AgentEvent{TurnID: strings.Repeat("x", maxTurnID+1), Seq: 1, Event: topics.Raw("{}")})
	require.Equal(t, []string{reasonTurnID}, p.handle(long).letters())
	require.Nil(t, p.row)
	p.begin("t")
	require.Equal(t, []string{reasonNotEvent}, p.handle(eventRecord(t, "t", 4, `"text"`)).letters())
	require.Empty(t, p.handle(eventRecord(t, "t", 4, `"text"`)).letters(), "a repeat is one")
	require.Equal(t, []string{reasonNotEvent}, p.handle(eventRecord(t, "t", 6, `null`)).letters())
	large := deltaEvent("m", strings.Repeat("x", p.config.eventLimit()))
	require.Equal(t, []string{reasonEventSize}, p.handle(eventRecord(t, "t", 5, large)).letters())
	p.handle(eventRecord(t, "t", 7, `{"type":"message_delta","data":{"id":"m","delta":7}}`))
	require.Equal(t, []string{reasonTaken}, p.handle(terminalRecord(t, "t", 7, okResult("x"))).letters())
	p.handle(terminalRecord(t, "t", 8, okResult("end_turn")))
	b := p.only("t")
	require.Equal(t, helloMessages+` "end_turn" null`, contents(b))
	require.EqualValues(t, 4, b.MalformedEvents)
}

func TestLostPartClosesTheTurnWithTheEarlierEvents(t *testing.T) {
	p := newPlay(t)
	p.begin("t")
	for i := range 200 {
		p.handle(eventRecord(t, "t", int64(4+i), deltaEvent("m", "0123456789")))
	}
	parts := p.state().Open[0].Parts
	require.Len(t, parts, 1)
	delete(p.parts, parts[0].First+1)
	out := p.decide(terminalRecord(t, "t", 204, okResult("end_turn")))
	b := effects(out.Effects).batches()[0]
	require.Equal(t, "failed internal", outcomeOf(b))
	require.Contains(t, b.Messages.String(), "Hello0123")
}
