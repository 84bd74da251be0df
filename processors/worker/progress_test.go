package worker_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNothingIsLostAndNothingCommittedIsRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"read": func(*rapid.T) { w.read() },
			"start": func(t *rapid.T) {
				if len(w.owner.pending) > 0 {
					w.start(rapid.SampledFrom(w.owner.pending).Draw(t, "record"))
				}
			},
			"settle":         func(*rapid.T) { w.end(true) },
			"release":        func(*rapid.T) { w.end(false) },
			"commit":         func(*rapid.T) { w.commit(true) },
			"unacknowledged": func(*rapid.T) { w.commit(false) },
			"tick":           func(t *rapid.T) { w.tick(time.Duration(rapid.IntRange(1, 90).Draw(t, "s")) * time.Second) },
			"rebalance":      func(*rapid.T) { w.move(w.pick("owner"), true) },
			"evict":          func(*rapid.T) { w.move(w.pick("owner"), false) },
			"confirm":        func(*rapid.T) { w.confirm() },
			"crash":          func(*rapid.T) { w.crash(w.pick("crashed")) },
		})
		w.finish()
	})
}
