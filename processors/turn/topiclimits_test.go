package turn

import (
	"strings"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// A record that its topic would refuse ends what it belongs to as one that is larger than the record limit does.
func TestTopicThatAcceptsLessEndsOnlyWhatItRefuses(t *testing.T) {
	const less, large = 100_000, 150_000
	text := strings.Repeat("x", large)
	accepts := func(of func(*topicLimits) *int) func(*rules) {
		return func(r *rules) { *of(&r.accepted) = less }
	}
	t.Run("answer", func(t *testing.T) {
		p := newPlay(t, accepts(func(l *topicLimits) *int { return &l.output }))
		require.Equal(t, topics.CodeTooLarge, the[answered](t, p.respond(p.ask("hi"), saying(text))).Error.Code)
		require.Equal(t, "short", the[answered](t, p.respond(p.ask("hi"), saying("short"))).Content)
	})
	t.Run("message", func(t *testing.T) {
		p := newPlay(t, accepts(func(l *topicLimits) *int { return &l.model }))
		require.Equal(t, topics.CodeTooLarge, the[answered](t, p.send("message-input", message(text))).Error.Code)
		p.ask("hi")
	})
	for name, of := range map[string]func(*topicLimits) *int{
		"result for the model": func(l *topicLimits) *int { return &l.model },
		"tool message":         func(l *topicLimits) *int { return &l.input },
		"completed step":       func(l *topicLimits) *int { return &l.completed },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, accepts(of))
			p.respond(p.ask("hi"), calling("t1"))
			out := p.result("t1", text)
			has(t, string(the[toolMessage](t, out).Content), "too_large")
			for _, e := range p.encode(out) {
				require.Less(t, len(e.raw), less, e.stream)
			}
		})
	}
	t.Run("tool call", func(t *testing.T) {
		p := newPlay(t, accepts(func(l *topicLimits) *int { return &l.tool }))
		out := p.respond(p.ask("hi"), strings.Replace(calling("t1", "t2"), `{"at":1}`, `{"at":"`+text+`"}`, 1))
		require.Len(t, emitted[called](out), 1)
		require.Equal(t, "t2", *the[called](t, out).ToolUseID)
		has(t, string(p.resultOf(0).Result), "too_large")
	})
}

type acceptance map[goka.Stream]int

func (a acceptance) MaxRecordBytes(to ...goka.Stream) int {
	least := 1 << 20
	for _, topic := range to {
		if n, ok := a[topic]; ok {
			least = min(least, n)
		}
	}
	if len(to) == 0 {
		for _, n := range a {
			least = min(least, n)
		}
	}
	return least
}

func TestLimitsAreThoseOfEachTopic(t *testing.T) {
	p := newPlay(t)
	c := p.topics
	r := p.rules
	p.bind.within(&r, acceptance{})
	require.Equal(t, topicLimits{}, r.accepted)
	require.Equal(t, p.rules.RowLimit, r.RowLimit)
	p.bind.within(&r, acceptance{
		c.MessageOutput.Stream(): 1000, c.ToolUseDLQ.Stream(): 2000, goka.Stream(goka.GroupTable(c.Group())): 320_000,
	})
	require.Equal(t, 1000, r.limit(r.accepted.output))
	require.Equal(t, 2000, r.limit(r.accepted.tool))
	require.Equal(t, r.RecordLimit, r.limit(r.accepted.model))
	require.Equal(t, 300_000, r.RowLimit)
}
