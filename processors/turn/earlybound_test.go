package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// A step may have a thousand calls, whose workers drop the repeated calls after a crash.
func TestResultsOfAStepAreHeldAsFarAsTheRowHasRoom(t *testing.T) {
	for _, n := range []int{100, maxCalls} {
		t.Run(fmt.Sprint(n, " calls"), func(t *testing.T) {
			p := newPlay(t)
			asked := p.ask("one")
			ids := make([]string, n)
			for i := range ids {
				ids[i] = fmt.Sprint("c", i)
			}
			asks := response(asked, calling(ids...))
			var calls []string
			p.lost(func() { calls = p.send("think-request-response", asks).ids() })
			for i, id := range ids {
				opts := []recordOption{header(topics.HeaderID, calls[i]+"/result")}
				send := p.sendUnchecked
				if i%50 < 2 {
					send = p.send
				}
				require.Empty(t, send("tool-use-result", toolResult(id, "of "+id), opts[i%2:]...))
			}
			out := p.send("think-request-response", asks)
			require.Empty(t, out.letters())
			for i, r := range the[completed](t, out).Results {
				require.Contains(t, string(r.Result), "of "+ids[i]+`"`)
			}
		})
	}
}

func TestHeldRecordsAreBounded(t *testing.T) {
	named := func(i int) recordOption {
		return header(topics.HeaderID, fmt.Sprintf("%s/1/tool-use/%d/result", strings.Repeat("0", 32), i))
	}
	for name, c := range map[string]struct {
		open bool
		held func(s *turnrow.State) []*turnrow.Held
	}{
		"for the open step":  {true, func(s *turnrow.State) []*turnrow.Held { return s.Turn.Held }},
		"for a step to come": {false, func(s *turnrow.State) []*turnrow.Held { return s.Early }},
	} {
		start := func(t *testing.T, held int) *play {
			p := newPlay(t)
			if c.open {
				p.ask("hi")
			}
			send := func(i int) { p.send("tool-use-result", toolResult(fmt.Sprint("t", i), "x"), named(i)) }
			if c.open {
				send = func(i int) { p.result(fmt.Sprint("t", i), "x") }
			}
			send(0)
			s := p.state()
			list := c.held(s)
			for range held - 1 {
				list = append(list, list[0])
			}
			if c.open {
				s.Turn.Held = list
			} else {
				s.Early = list
			}
			var err error
			p.row, err = turnrow.Table.Marshal(s)
			require.NoError(t, err)
			return p
		}
		send := func(p *play, text string) effects {
			if c.open {
				return p.result("more", text)
			}
			return p.send("tool-use-result", toolResult("more", text), named(9999))
		}
		t.Run(name+", in number", func(t *testing.T) {
			p := start(t, maxHeld)
			require.Equal(t, []string{reasonHeldFull}, send(p, "x").letters())
			p = start(t, maxHeld-1)
			require.Empty(t, send(p, "x"))
		})
		t.Run(name+", in bytes", func(t *testing.T) {
			p := start(t, 1)
			require.Equal(t, []string{reasonNoRoom}, send(p, strings.Repeat("x", p.rules.RowLimit)).letters())
		})
	}
}

// What is held is given up before anything that was accepted, or is remembered.
func TestHeldRecordsAreDroppedWhenTheRowIsFull(t *testing.T) {
	big := strings.Repeat("x", 600<<10)
	t.Run("to a conversation", func(t *testing.T) {
		p := newPlay(t)
		asked := p.ask("hi")
		p.send("message-input", message("waits"))
		early := response(enriched{LatestInput: topics.Raw(message("waits"))}, saying(big))
		require.Empty(t, p.send("think-request-response", early))
		require.Empty(t, p.result("t9", "held for the open step"))
		out := p.respond(asked, `"last_input_response":[{"role":"assistant","content":"`+strings.Repeat("y", 400<<10)+`"}],`+
			`"tool_uses":[{"tool_use_id":"t1","name":"look"}]`)
		require.Equal(t, []string{reasonNoRoom}, out.letters())
		require.Len(t, p.state().Waiting, 1)
		require.Len(t, p.state().Turn.Held, 1)
	})
	t.Run("to a message", func(t *testing.T) {
		p := newPlay(t)
		p.ask("hi")
		early := response(enriched{History: topics.Raw(`[{}]`), LatestInput: topics.Raw(message("later"))}, saying(big))
		require.Empty(t, p.send("think-request-response", early))
		out := p.send("message-input", message(strings.Repeat("y", 400<<10)))
		require.Equal(t, []string{reasonNoRoom}, out.letters())
		require.Len(t, p.state().Waiting, 1)
	})
	t.Run("to memory", func(t *testing.T) {
		p, asked, _ := lostTurn(t)
		require.Empty(t, p.respond(asked, saying(big)))
		known := len(p.state().Causes)
		p.rules.RowLimit = len(p.row)
		out := p.send("message-input", message("another"))
		require.Equal(t, []string{reasonNoRoom}, out.letters())
		require.Len(t, emitted[enriched](out), 1)
		require.Greater(t, len(p.state().Causes), known)
	})
}
