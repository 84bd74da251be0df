package fold

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTooLargeTurnKeepsItsFirstEvents(t *testing.T) {
	p := newPlay(t, func(c *Config) { c.TurnLimit = 4 << 10 })
	p.handle(eventRecord(t, "t", 1, startEvent("m")))
	seq := int64(1)
	for len(p.batches) == 0 {
		seq++
		p.handle(eventRecord(t, "t", seq, deltaEvent("m", strings.Repeat("x", 100))))
	}
	b := p.only("t")
	require.Equal(t, "failed too_large", outcomeOf(b))
	require.Equal(t, fmt.Sprintf(`[{"role":"assistant","content":"%s"}]`, strings.Repeat("x", int(seq-2)*100)),
		b.Messages.String())
	require.EqualValues(t, seq-1, b.Seq)
	require.Greater(t, seq, int64(35))
	require.Empty(t, p.handle(eventRecord(t, "t", seq+1, deltaEvent("m", "more"))))
}

func TestTooLargeBatchIsReduced(t *testing.T) {
	p := newPlay(t, func(c *Config) { c.RecordLimit, c.TurnLimit = minRecord, 1<<20 })
	for i := range 40 {
		p.handle(eventRecord(t, "t", int64(i+1),
			fmt.Sprintf(`{"type":"message","data":{"text":"%d%s"}}`, i, strings.Repeat("x", 5000))))
	}
	p.handle(terminalRecord(t, "t", 41, okResult("end_turn")))
	b := p.only("t")
	require.Equal(t, "failed too_large", outcomeOf(b))
	require.Greater(t, len(b.Messages), minRecord-10_000)
	require.Contains(t, b.Messages.String(), `"content":"0x`)
}

func TestOneTurnTooManyExpiresTheLeastRecentlyActive(t *testing.T) {
	p := newPlay(t, func(c *Config) { c.OpenTurns = 2 })
	p.begin("a")
	p.now = p.now.Add(time.Second)
	p.begin("b")
	p.now = p.now.Add(time.Second)
	p.handle(eventRecord(t, "a", 4, deltaEvent("m", "!")))
	p.begin("c")
	require.Equal(t, "expired too_many_turns", outcomeOf(p.only("b")))
	require.Len(t, p.batches, 1)
	p.settle()
	require.Equal(t, "expired silence", outcomeOf(p.only("a")))
	require.Equal(t, "expired silence", outcomeOf(p.only("c")))
}

func TestClosedTurnsAreForgotten(t *testing.T) {
	p := newPlay(t, func(c *Config) { c.RememberCount = 100 })
	for i := range 300 {
		p.handle(terminalRecord(t, fmt.Sprintf("t%d", i), 1, okResult("end_turn")))
	}
	require.LessOrEqual(t, len(p.parts), 3, "pages")
	require.Less(t, len(p.row), 100)
	for i := 200; i < 300; i++ {
		require.Empty(t, p.handle(terminalRecord(t, fmt.Sprintf("t%d", i), 1, okResult("end_turn"))))
	}
	require.Len(t, p.handle(terminalRecord(t, "t0", 1, okResult("end_turn"))).batches(), 1)
	p.settle()
	require.Nil(t, p.row)
}

func TestTableWithoutPartsStoresThemInTheRow(t *testing.T) {
	p := newPlay(t, func(c *Config) { c.RecordLimit = rowReserve + 20_000 })
	p.whole = true
	p.begin("a")
	p.begin("b")
	for i := range 500 {
		p.handle(eventRecord(t, "a", int64(4+i), deltaEvent("m", "0123456789")))
	}
	p.handle(terminalRecord(t, "a", 504, okResult("end_turn")))
	require.Equal(t, "complete", outcomeOf(p.only("a")))
	for i := range 2000 {
		p.handle(eventRecord(t, "b", int64(4+i), deltaEvent("m", "0123456789")))
	}
	require.Equal(t, "failed too_large", outcomeOf(p.only("b")))
	require.Greater(t, len(p.only("b").Messages), 18_000)
	p.settle()
}
