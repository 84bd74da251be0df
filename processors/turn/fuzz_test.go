package turn

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// FuzzAnyBytesOnAnyInput hands arbitrary bytes to every input while a turn thinks, and while its tools run: nothing
// panics, what comes of it can be encoded and fits, and the turn still ends.
func FuzzAnyBytesOnAnyInput(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", `"x"`, message("hi"), requestMessage("hi", "r1"), toolResult("t1", "x"), route,
		namedRoute("r1"), `{"action":"cancel"}`, `{"action":"purge"}`, `{"originalValue":"{}","error":"x"}`,
		`{"last_input_response":[{"role":"assistant","content":[{"type":"text","text":"x"}]}],"end_turn":true}`,
		`{` + calling("t1", "t1", "") + `}`, `{"tool_uses":[null]}`, `{"tool_use_id":"t1","name":null,"result":[1]}`,
		`{"session_id":"s1","role":"user","metadata":{"request_id":7}}`, `{"previous_messages":[null],"cost":1e999}`,
		`{"gate_id":"g","session_id":"s1","turn_id":"r1","kind":"tool","tool":"x"}`, `{"gate_id":"g","status":"approved"}`,
	} {
		f.Add([]byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		p := newPlay(t, withPolicy(paying()), withGates)
		deliver := func(value []byte) {
			for _, topic := range append(slices.Clone(inputs), "session-control", "gate-outcomes", "gate-requests") {
				for _, v := range [][]byte{value, nil} {
					e, ok := p.event(topic, v)
					if !ok {
						continue // dead-lettered by the edge
					}
					es := p.apply(e)
					fits(t, p, es)
					require.Empty(t, p.repeat(e).changes(), "a repeat changes nothing")
				}
			}
		}
		p.send("message-input", message("one"))
		deliver(first)
		if s := p.state(); s != nil && s.Turn != nil && len(s.Turn.Calls) == 0 {
			p.send("think-request-response", `{`+callingFor(wanted{"t1", "pay", `{}`}, wanted{"t2", "look", `{}`})+`}`)
		}
		deliver(second)
		for range 100 {
			s := p.state()
			if s == nil || s.Turn == nil {
				return
			}
			p.wait(time.UnixMilli(s.DeadlineMs).Sub(p.now))
		}
		require.Fail(t, "a turn hangs")
	})
}

// changes are the effects that are no dead letters.
func (es effects) changes() (list effects) {
	for _, e := range es {
		if _, ok := e.(deadLetter); !ok {
			list = append(list, e)
		}
	}
	return list
}

// FuzzRow reads arbitrary bytes as a row.
func FuzzRow(f *testing.F) {
	p := newPlay(f)
	p.respond(p.ask("one"), calling("t1"))
	f.Add(p.row)
	f.Add([]byte{0x10, 0x05})
	f.Add([]byte{0x3a, 0x00}) // a turn of nothing
	f.Fuzz(func(t *testing.T, raw []byte) {
		ms, ok := rows.Deadline(raw)
		s, err := turnrow.Table.Unmarshal(raw)
		if err == nil && ok {
			require.NotZero(t, ms)
		}
		_ = describe(s)
	})
}
