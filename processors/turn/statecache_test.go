package turn

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// A state that is kept is as good as its row, when the memory of what its events came in is used for something else, and
// when what a session remembers is more than it may: play compares the two at each event.
func TestCachedStatesEqualTheirRowsAndShareNoMemoryWithEvents(t *testing.T) {
	deeds := []string{"ok", "early", "again", "fail", "same", "missing"}
	rapid.Check(t, func(t *rapid.T) {
		list := make([]script, rapid.IntRange(10, 40).Draw(t, "turns"))
		for i := range list {
			tools := rapid.SliceOfN(rapid.SampledFrom(deeds), 1, 4).Draw(t, "tools")
			list[i] = script{
				Route: []string{"", "named", "unnamed"}[i%3],
				Steps: []stepScript{{Tools: tools}},
				End:   rapid.SampledFrom(anyEnd).Draw(t, "end"),
			}
		}
		w := newWorld(t, list)
		w.closeSteps(rapid.SampledFrom(pasts).Draw(t, "past"))
		w.rules.RememberCount = rapid.IntRange(1, 60).Draw(t, "remembered")
		for range 1000 {
			ready := w.ready()
			if len(ready) == 0 {
				break
			}
			w.deliver(rapid.SampledFrom(ready).Draw(t, "topic"))
			value := w.sent[len(w.sent)-1].event.source().Value
			for i := range value {
				value[i] = '!'
			}
		}
	})
}

// What is late and is in parts has a bound of its own: where there is more, the states stay without it.
func TestCachedHistoriesAreBounded(t *testing.T) {
	parts := func(n int) []*turnrow.Part { return []*turnrow.Part{{Number: 1, Length: uint32(n)}} }
	for name, c := range map[string]struct {
		field int
		state func(n int, end []byte) *turnrow.State
		end   func(*turnrow.State) []byte
	}{
		"history": {history, func(n int, end []byte) *turnrow.State {
			return &turnrow.State{HistoryParts: parts(n), History: end}
		}, (*turnrow.State).GetHistory},
		"tail": {tail, func(n int, end []byte) *turnrow.State {
			return &turnrow.State{Turn: &turnrow.OpenTurn{TailParts: parts(n), Tail: end}}
		}, func(s *turnrow.State) []byte { return s.Turn.Tail }},
		"prompt": {prompt, func(n int, end []byte) *turnrow.State {
			return &turnrow.State{Turn: &turnrow.OpenTurn{PromptParts: parts(n), Prompt: end}}
		}, func(s *turnrow.State) []byte { return s.Turn.Prompt }},
		"results": {results, func(n int, end []byte) *turnrow.State {
			return &turnrow.State{Turn: &turnrow.OpenTurn{ResultsParts: parts(n), Results: end}}
		}, func(s *turnrow.State) []byte { return s.Turn.Results }},
	} {
		t.Run(name, func(t *testing.T) {
			const sessions, size = 100, cacheHistories / 50
			r := newStateCache()
			row := func(n int) []byte { return fmt.Append(nil, "row ", n) }
			for range 3 {
				for n := range sessions {
					whole := make([]byte, size)
					s := c.state(size-1, whole[size-1:])
					w := cachedState{row: row(n), state: s}
					w.full[c.field] = whole
					r.put(fmt.Sprint(n), w)
					require.LessOrEqual(t, r.lazySize, cacheHistories)
				}
			}
			for n := range sessions {
				require.True(t, r.has(fmt.Sprint(n), row(n)))
				require.False(t, r.has(fmt.Sprint(n), []byte("another")))
				w, ok := r.take(fmt.Sprint(n), row(n))
				require.True(t, ok)
				require.Len(t, c.end(w.state), 1)
				if n < sessions-50 {
					require.Nil(t, w.full[c.field])
					require.Less(t, cap(c.end(w.state)), 100, "the end does not keep the whole in memory")
				} else {
					require.Len(t, w.full[c.field], size)
				}
				require.False(t, r.has(fmt.Sprint(n), row(n)))
			}
			require.Zero(t, r.lazySize)
			require.Equal(t, sessions*cacheEntry, r.size)
		})
	}
}

func TestCachedStatesAreBounded(t *testing.T) {
	r := newStateCache()
	for n := range 10_000 {
		r.put(fmt.Sprint(n), cachedState{row: make([]byte, cacheRow), state: &turnrow.State{}})
		require.LessOrEqual(t, r.size, cacheSize)
	}
	require.NotZero(t, r.states.Len())
	for r.states.Len() > 0 {
		r.states.RemoveOldest()
	}
	require.Zero(t, r.size)
}
