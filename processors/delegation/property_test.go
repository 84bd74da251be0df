package delegation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
)

func TestEveryDelegationEndsOnceAndIsAnnouncedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, moves := newWorld(t), moves
		if rapid.Bool().Draw(t, "sessions") {
			w, moves = newSessionsWorld(t), append(slices.Clone(moves), "followup")
		}
		for range rapid.IntRange(0, 100).Draw(t, "moves") {
			w.move(t, moves)
		}
		w.finish(t)
		w.check()
		for id, list := range w.written {
			if !strings.HasSuffix(id, "/result") && !strings.HasPrefix(id, "turn/") {
				require.Len(t, list, 1, "%s is written once", id)
			}
		}
		for log := range w.logs { // repeat everything
			for _, e := range slices.Clone(w.logs[log]) {
				w.apply(e)
			}
		}
		w.finish(t)
		w.check()
	})
}

// After a crash, the group reads records again, in another order of topics and at another time, and its outputs since the cut are
// still there. All that it tells others about a delegation must be the same.
func TestEveryDelegationEndsInOneWayAcrossCrashes(t *testing.T) {
	for name, begin := range map[string]func(machinetest.TB) *world{
		"room": func(t machinetest.TB) *world { return newWorld(t) }, "full rows": newFullWorld, "sessions": newSessionsWorld,
	} {
		for _, purge := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, purge %v", name, purge), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					w := begin(t)
					moves := append(slices.Clone(moves), "cut", "crash", "crash", "drain", "drain")
					if name == "sessions" {
						moves = append(moves, "followup", "followup")
					}
					if purge {
						moves = append(moves, "purge")
					}
					for range rapid.IntRange(0, 150).Draw(t, "moves") {
						w.move(t, moves)
					}
					w.finish(t)
					w.crash()
					w.finish(t)
					w.check()
				})
			})
		}
	}
}

func TestEqualEventsGiveEqualResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := newWorld(t)
		for range rapid.IntRange(0, 60).Draw(t, "moves") {
			one.move(t, moves)
		}
		two, three := newHarness(t), newHarness(t)
		two.Now, three.Now = one.Now, one.Now // no record is from the future
		for _, log := range one.logs {
			for _, e := range log {
				require.Equal(t, two.Handle(e).Records(), three.Handle(e).Records())
				require.Equal(t, two.Row, three.Row)
			}
		}
	})
}
