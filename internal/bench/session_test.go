package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

const now = "2026-06-20T08:15:03.120Z"

// sound is a correct processor of one session.
type sound struct {
	t       *testing.T
	b       *conversations
	s       *session
	history string
	latest  string
}

func newSound(t *testing.T, history, calls int) *sound {
	b := newConversations("s", 1, calls, newInitialHistory(history))
	return &sound{t: t, b: b, s: b.all[0], history: "[]"}
}

func (p *sound) enriched() []byte {
	v := `{"session_id":"s0000000","user_id":"u","cost":null,"history":` + p.history + `,"latest_input":` + p.latest +
		`,"memoir_context":null,"timestamp":"` + now + `"}`
	require.True(p.t, jsontext.Value(v).IsValid(), v)
	return []byte(v)
}

func (p *sound) output() []byte {
	return fmt.Appendf(nil, `{"session_id":"s0000000","content":%s,"input_tokens":1}`, appendAnswer(nil, p.s))
}

// ask begins a turn.
func (p *sound) ask(calls int, plain bool) {
	p.latest = string(p.b.message(p.s, calls, plain, time.Now(), now))
	require.True(p.t, jsontext.Value(p.latest).IsValid(), p.latest)
}

// think hands over the think-request and keeps what the response leaves.
func (p *sound) think() thinkFields {
	v := p.b.request(p.s, p.enriched(), now)
	require.NotNil(p.t, v, p.b.violations)
	require.True(p.t, jsontext.Value(v).IsValid(), string(v))
	one, err := byJSON{}.thought(v)
	require.NoError(p.t, err)
	other, err := byPosition{}.thought(v)
	require.NoError(p.t, err)
	require.Equal(p.t, one, other, "both floors read the same")
	parts := []string{string(arrayContents(one.previous)), string(one.latest), string(arrayContents(one.said))}
	p.history = "[" + strings.TrimPrefix(strings.Join(parts, ","), ",") + "]"
	return one
}

// work does the calls and makes the tool message.
func (p *sound) work(uses [][]byte) {
	var entries, results []byte
	for i, use := range uses {
		v := p.b.call(p.s, use, now)
		require.True(p.t, jsontext.Value(v).IsValid(), string(v))
		r, err := byJSON{}.result(v)
		require.NoError(p.t, err)
		same, err := byPosition{}.result(v)
		require.NoError(p.t, err)
		require.Equal(p.t, r, same, "both floors read the same")
		if i > 0 {
			entries, results = append(entries, ','), append(results, ',')
		}
		entries, results = appendEntry(entries, r), append(results, v...)
	}
	p.latest = string(appendToolMessage(nil, p.s.key, entries, results, len(uses), now))
}

func (p *sound) turn(calls int) {
	p.ask(calls, false)
	uses := p.think().uses
	for range p.b.steps {
		if calls > 0 {
			require.Len(p.t, uses, calls)
			p.work(uses)
			uses = p.think().uses
		}
	}
	require.Empty(p.t, uses)
	require.True(p.t, p.b.output(p.s, p.output()))
}

func TestCorrectTurnsHaveNoViolations(t *testing.T) {
	for _, history := range []int{0, minHistory, 10 << 10} {
		p := newSound(t, history, 3)
		p.ask(0, true)
		previous := p.think().previous
		require.Len(t, arrayContents(previous)[:p.s.initialLength], max(history-2, 0))
		require.True(t, p.b.output(p.s, p.output()))
		lengths := []int{len(p.history)}
		for _, calls := range []int{3, 0, 3, 3, 3} {
			p.turn(calls)
			lengths = append(lengths, len(p.history))
		}
		require.Equal(t, lengths[4], lengths[5], "a history has the same length in every turn")
		require.InEpsilon(t, lengths[4], lengths[0], 0.02, "and in the first")
		require.NoError(t, p.b.violations.err(false))
	}
}

// The conversation grows with every step, and by what the tools say; the next turn begins where this one did.
func TestTurnsOfSeveralStepsHaveNoViolations(t *testing.T) {
	p := newSound(t, 10<<10, 3)
	p.b.steps, p.b.toolText = 4, strings.Repeat("N4 ", 1000)
	p.ask(0, true)
	p.think()
	require.True(t, p.b.output(p.s, p.output()))
	for range 3 {
		p.turn(3)
		require.Greater(t, len(p.history), 10<<10+4*3*2*3000)
		require.Less(t, len(p.history), 12<<10+4*3*2*3400)
		require.NoError(t, p.b.violations.err(false))
	}
	p.ask(3, false)
	earlier := p.think().uses
	p.work(earlier)
	p.think()
	require.Nil(t, p.b.call(p.s, earlier[0], now), "a call of the step before")
	require.Error(t, p.b.violations.err(false))
}

// atSecondRequest is a processor whose calls are done and whose think-request is due.
func atSecondRequest(t *testing.T) *sound {
	p := newSound(t, 0, 2)
	p.ask(2, false)
	p.work(p.think().uses)
	return p
}

// atOutput is one whose output is due.
func atOutput(t *testing.T) *sound {
	p := atSecondRequest(t)
	p.think()
	return p
}

func TestViolationsAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		play func(t *testing.T) *sound
		want string
	}{
		"history without an element": {func(t *testing.T) *sound {
			p := atSecondRequest(t)
			p.history = "[]"
			p.b.request(p.s, p.enriched(), now)
			return p
		}, "1 x history"},
		"history with a changed byte": {func(t *testing.T) *sound {
			p := atSecondRequest(t)
			p.history = strings.Replace(p.history, "18:00", "18:01", 1)
			p.b.request(p.s, p.enriched(), now)
			return p
		}, "1 x history"},
		"a call without a result": {func(t *testing.T) *sound {
			p := atSecondRequest(t)
			p.latest = strings.Replace(p.latest, `"status":"success"`, `"status":"error"`, 1)
			p.b.request(p.s, p.enriched(), now)
			return p
		}, "1 of 2 calls"},
		"one result for two calls": {func(t *testing.T) *sound {
			p := atSecondRequest(t)
			p.latest = strings.ReplaceAll(p.latest, ".1.1", ".1.0")
			p.b.request(p.s, p.enriched(), now)
			return p
		}, "does not have exactly one result"},
		"a think-request before the tool calls": {func(t *testing.T) *sound {
			p := newSound(t, 0, 2)
			p.ask(2, false)
			p.think()
			p.latest = `{"role":"tool","content":[],"timestamp":null}`
			p.b.request(p.s, p.enriched(), now)
			return p
		}, "before all tool calls"},
		"unreadable think-request": {func(t *testing.T) *sound {
			p := newSound(t, 0, 0)
			p.ask(0, false)
			p.b.request(p.s, []byte(`{}`), now)
			return p
		}, "think-request"},
		"unreadable call": {func(t *testing.T) *sound {
			p := newSound(t, 0, 1)
			p.ask(1, false)
			p.think()
			p.b.call(p.s, []byte(`{}`), now)
			return p
		}, "tool call"},
		"a think-request twice": {func(t *testing.T) *sound {
			p := newSound(t, 0, 1)
			p.ask(1, false)
			twice := p.enriched()
			p.b.request(p.s, twice, now)
			p.b.request(p.s, twice, now)
			return p
		}, "1 repeats"},
		"a call twice": {func(t *testing.T) *sound {
			p := newSound(t, 0, 1)
			p.ask(1, false)
			use := p.think().uses[0]
			p.b.call(p.s, use, now)
			require.Nil(t, p.b.call(p.s, use, now))
			return p
		}, "1 repeats"},
		"an unknown call": {func(t *testing.T) *sound {
			p := newSound(t, 0, 1)
			p.ask(1, false)
			use := bytes.Replace(p.think().uses[0], []byte(".1.0"), []byte(".1.7"), 1)
			require.Nil(t, p.b.call(p.s, use, now))
			return p
		}, "1 repeats"},
		"an output twice": {func(t *testing.T) *sound {
			p := atOutput(t)
			require.True(t, p.b.output(p.s, p.output()))
			require.False(t, p.b.output(p.s, p.output()))
			return p
		}, "1 repeats"},
		"an early output": {func(t *testing.T) *sound {
			p := atSecondRequest(t)
			require.False(t, p.b.output(p.s, p.output()))
			return p
		}, "before the model's answer"},
		"another answer": {func(t *testing.T) *sound {
			p := atOutput(t)
			p.b.output(p.s, []byte(`{"content":"no"}`))
			return p
		}, "not the answer"},
		"an error output": {func(t *testing.T) *sound {
			p := atOutput(t)
			p.b.output(p.s, []byte(`{"content":"late","status":"error"}`))
			return p
		}, "an error output"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.play(t).b.violations.err(false)
			require.ErrorIs(t, err, errViolation)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestRepeatsCanBeAllowed(t *testing.T) {
	p := atOutput(t)
	p.b.output(p.s, p.output())
	p.b.output(p.s, p.output())
	require.NoError(t, p.b.violations.err(true))
	require.Equal(t, 1, p.b.violations.repeatCount())
}

func TestIDsAreCheckedIfPresent(t *testing.T) {
	violation := func(ids ...string) error {
		b := newConversations("s", 1, 0, newInitialHistory(0))
		s := b.all[0]
		b.message(s, 0, false, time.Now(), now)
		for _, id := range ids {
			b.id(s, []byte(id))
		}
		return b.violations.err(false)
	}
	require.NoError(t, violation("", "", ""))
	require.NoError(t, violation("t/0/enriched/0", "t/0/output/0"))
	require.ErrorContains(t, violation("t/0/a/0", "t/0/a/0"), "the same")
	require.ErrorContains(t, violation("t/0/a/0", "u/0/b/0"), "several")
	require.ErrorContains(t, violation("t/0/a/0", ""), "without an ID")
}
