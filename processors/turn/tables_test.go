package turn

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

// twin is a session in three tables: one with parts whose states are kept, one with parts whose states are lost or half
// forgotten at random, and one without parts.
type twin struct {
	*play
	bare  *play
	asked *enriched
	open  []string
	made  int
}

func newTwin(t tb, change ...func(*rules)) *twin {
	w := &twin{play: newPlay(t, change...), bare: newPlay(t, change...)}
	w.bare.parts = nil
	return w
}

// unloaded holds an event that loads what it needs against one whose state is loaded.
func (w *twin) unloaded(e event) {
	if w.small() {
		return
	}
	s, err := stateOf(w.table().Value())
	require.NoError(w.tb, err)
	out, err := applied(s, e, w.table(), w.now, w.rules)
	require.NoError(w.tb, err)
	want, err := applied(w.state(), e, nil, w.now, w.rules)
	require.NoError(w.tb, err)
	require.Equal(w.tb, want.Effects, out.Effects, "%T", e)
	require.Equal(w.tb, want.Changed, out.Changed)
	if out.State == nil {
		require.Nil(w.tb, want.State)
		return
	}
	whole := func(out outcome) (all [largeFields]string) {
		parts := maps.Clone(w.parts)
		for _, p := range out.NewParts {
			parts[p.Number] = p.Value
		}
		for i, f := range stateLargeFields(out.State) {
			if f.absent() || f.entry != 0 {
				continue
			}
			for _, p := range *f.parts {
				all[i] += string(parts[p.Number][:p.Length])
			}
			all[i] += string(*f.inline)
		}
		return all
	}
	require.Equal(w.tb, whole(want), whole(out), "%T", e)
}

func (w *twin) both(e event) {
	w.unloaded(e)
	es := w.play.apply(e)
	w.bare.now, w.bare.rules = w.now, w.rules
	w.compare(es, w.bare.apply(e))
	for _, m := range emitted[enriched](es) {
		w.asked, w.open = &m, nil
	}
	for _, c := range emitted[called](es) {
		w.open = append(w.open, *c.ToolUseID)
	}
	if t := w.state(); t == nil || t.Turn == nil {
		w.asked, w.open = nil, nil
	}
}

func (w *twin) say(topic, value string, opts ...recordOption) {
	e, ok := w.event(topic, []byte(value), opts...)
	require.True(w.tb, ok, value)
	w.both(e)
}

func (w *twin) moves(sizes []int) map[string]func(*rapid.T) {
	size := func(t *rapid.T) string { return strings.Repeat("x", rapid.SampledFrom(sizes).Draw(t, "size")) }
	return map[string]func(*rapid.T){
		"ask": func(t *rapid.T) { w.say("message-input", message("q"+size(t))) },
		"call": func(t *rapid.T) {
			if w.asked == nil {
				return
			}
			var ids []string
			for range rapid.IntRange(1, 6).Draw(t, "calls") {
				w.made++
				ids = append(ids, fmt.Sprint("c", w.made))
			}
			if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
				ids = append(ids, " ", ids[0])
			}
			w.say("think-request-response", response(*w.asked, `"x":"`+size(t)+`",`+
				strings.Replace(calling(ids...), `"content":[]`, `"content":"`+size(t)+`"`, 1)))
		},
		"answer": func(t *rapid.T) {
			if w.asked == nil {
				return
			}
			w.say("think-request-response", response(*w.asked, saying("a"+size(t))))
		},
		"answer without the prompt": func(t *rapid.T) {
			if w.asked == nil {
				return
			}
			w.made++
			w.say("think-request-response", fmt.Sprintf(`{"cost":%d,%s}`, w.made,
				rapid.SampledFrom([]string{saying("a"), calling(fmt.Sprint("c", w.made))}).Draw(t, "said")))
		},
		"compact": func(t *rapid.T) {
			if w.asked == nil {
				return
			}
			other := *w.asked
			other.History = topics.Raw(`[{"role":"user","content":"` + size(t) + `"}]`)
			w.made++
			w.say("think-request-response", response(other, `"compaction":true,`+calling(fmt.Sprint("c", w.made), "z")))
		},
		"result": func(t *rapid.T) {
			if len(w.open) == 0 {
				return
			}
			n := rapid.IntRange(0, len(w.open)-1).Draw(t, "n")
			id := w.open[n]
			if rapid.IntRange(0, 4).Draw(t, "stays") > 0 {
				w.open = append(w.open[:n:n], w.open[n+1:]...)
			}
			w.say("tool-use-result", toolResult(id, size(t)))
		},
		"failure": func(t *rapid.T) {
			if len(w.open) == 0 {
				return
			}
			w.say("tool-use-dlq", fmt.Sprintf(`{"tool_use_id":%q,"name":"look"}`, w.open[0]))
			if len(w.open) > 0 {
				w.open = w.open[1:]
			}
		},
		"early": func(t *rapid.T) {
			n := w.made + rapid.IntRange(1, 4).Draw(t, "ahead")
			w.say("tool-use-result", toolResult(fmt.Sprint("c", n), size(t)))
		},
		"early failure": func(t *rapid.T) {
			w.say("tool-use-dlq", fmt.Sprintf(`{"tool_use_id":"c%d"}`, w.made+rapid.IntRange(1, 4).Draw(t, "ahead")))
		},
		"route":  func(*rapid.T) { w.say("reply-to", `{"to":1}`) },
		"cancel": func(*rapid.T) { w.say("session-control", `{"action":"cancel"}`) },
		"purge":  func(*rapid.T) { w.say("session-control", `{"action":"purge"}`) },
		"give up": func(t *rapid.T) {
			if w.asked == nil {
				return
			}
			w.say("think-dlq", `{"latest_input":`+string(w.asked.LatestInput)+`}`)
		},
		"forget conversation": func(*rapid.T) {
			e, _ := w.event("think-request-response", nil)
			w.both(e)
		},
		"time": func(t *rapid.T) {
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 6 * time.Minute, 11 * time.Minute, 25 * time.Hour}).Draw(t, "d"))
			w.both(deadlineCame{Session: w.key})
		},
		"lose states": func(*rapid.T) { w.restart() },
		"forget late": func(*rapid.T) {
			r := w.bind.cache
			if _, kept, ok := r.histories.RemoveOldest(); ok {
				r.dropHistory(kept)
			}
		},
		"again": func(t *rapid.T) {
			if len(w.past) > 0 {
				w.both(rapid.SampledFrom(w.past).Draw(t, "event"))
			}
		},
		"": func(*rapid.T) { w.accounted() },
	}
}

// accounted: what is kept is counted.
func (w *twin) accounted() {
	r := w.bind.cache
	kept, ok := r.states.Peek(w.key)
	if !ok || kept.state == nil {
		return
	}
	held := 0
	for i, f := range stateLargeFields(kept.state) {
		if f.absent() {
			continue
		}
		held += max(cap(kept.full[i]), cap(*f.inline))
	}
	require.LessOrEqual(w.tb, held, kept.size+kept.lazySize+8<<10, "memory that is kept is counted")
}

func TestTablesWithAndWithoutPartsHaveTheSameOutcomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwin(t)
		t.Repeat(w.moves([]int{3, 400, 1500, 2500, 12_000}))
	})
}

// A small row: nothing hangs, nothing is too large.
func TestTurnsOfSmallRowsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwin(t, func(r *rules) { r.RecordLimit, r.RowLimit = minRecord, minRecord-rowMargin })
		w.play.rules.RememberCount = 50
		t.Repeat(w.moves([]int{3, 2500, 12_000, 30_000, 50_000}))
		for n := 0; w.state() != nil && w.state().Turn != nil; n++ {
			require.Less(t, n, 100, "a turn hangs")
			w.now = time.UnixMilli(w.state().DeadlineMs)
			w.both(deadlineCame{Session: w.key})
		}
	})
}

// small rows are compared in no other table: how much fits into one depends on what names its parts.
func (w *twin) small() bool { return w.rules.RowLimit < 1<<19 }

func (w *twin) compare(es, bare effects) {
	if w.small() {
		return
	}
	require.Equal(w.tb, es, bare, "a table without parts")
}
