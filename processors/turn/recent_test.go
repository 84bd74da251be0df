package turn

import (
	"testing"

	"pgregory.net/rapid"
)

// A state that is kept is as good as its row, when the memory of what its events came in is used for something else, and
// when what a session remembers is more than it may: play compares the two at each event.
func TestKeptStatesAreTheirRowsAndShareNothingWithEvents(t *testing.T) {
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
		w.rules.RememberCount = rapid.IntRange(1, 60).Draw(t, "remembered")
		for range 1000 {
			ready := w.ready()
			if len(ready) == 0 {
				break
			}
			w.deliver(rapid.SampledFrom(ready).Draw(t, "topic"))
			value := w.sent[len(w.sent)-1].event.record().Value
			for i := range value {
				value[i] = '!'
			}
		}
	})
}
