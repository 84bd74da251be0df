package turn

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The property of the transition: however the records of the input topics are interleaved, each topic in its own order,
// however often they are repeated, and wherever the rows go through bytes, the outputs are the same.
//
// Left out are races in which the first record wins: a cancel, different results for one call on different topics, and
// results that arrive before their call under an id that another turn's call has too.

func scripts(ends []string, deeds ...string) *rapid.Generator[[]script] {
	step := rapid.Custom(func(t *rapid.T) stepScript {
		s := stepScript{
			Tools:  rapid.SliceOfN(rapid.SampledFrom(deeds), 1, 3).Draw(t, "tools"),
			SameID: rapid.Bool().Draw(t, "same ids"),
		}
		for _, d := range s.Tools {
			if d == "again" || d == "same" {
				s.SameID = false // what is left of an earlier call would be the first result of the next one
			}
		}
		return s
	})
	one := rapid.Custom(func(t *rapid.T) script {
		return script{
			Route:   rapid.SampledFrom([]string{"", "named", "unnamed"}).Draw(t, "route"),
			Steps:   rapid.SliceOfN(step, 0, 2).Draw(t, "steps"),
			End:     rapid.SampledFrom(ends).Draw(t, "end"),
			Rethink: rapid.Bool().Draw(t, "rethink"),
		}
	})
	return rapid.SliceOfN(one, 1, 4)
}

// anyEnd are the ways a turn may end, mostly well.
var anyEnd = []string{"answer", "answer", "answer", "fail", "silence", "no end"}

// pasts are how many steps a session closed before: none, as many as stand in the row, fewer and more than are
// remembered.
var pasts = []int{0, 11, 60, 100}

// plainly is what the scripts lead to where nothing is odd.
func plainly(t tb, list []script) *world {
	w := newWorld(t, list)
	w.settle()
	w.judge(true)
	return w
}

// interleaved plays scripts in any order of topics and with repeats, and then every record once more.
func interleaved(t *rapid.T, list []script) *world {
	w := newWorld(t, list)
	w.closeSteps(rapid.SampledFrom(pasts).Draw(t, "past"))
	for range rapid.IntRange(0, 80).Draw(t, "moves") {
		ready := w.ready()
		if len(ready) == 0 {
			break
		}
		w.deliver(rapid.SampledFrom(ready).Draw(t, "topic"))
		if rapid.IntRange(0, 3).Draw(t, "repeat") == 0 {
			w.handle(rapid.SampledFrom(w.sent).Draw(t, "again").event)
		}
	}
	w.settle()
	for _, q := range w.sent {
		w.handle(q.event)
	}
	w.settle()
	return w
}

func anyScripts(t *rapid.T) []script {
	return scripts(anyEnd, "ok", "early", "again", "fail", "missing", "blank", "same").Draw(t, "scripts")
}

func TestEveryMessageEndsInOneOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { interleaved(t, anyScripts(t)).judgeMessages() })
}

func TestEveryToolCallEndsInOneResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { interleaved(t, anyScripts(t)).judgeCalls() })
}

func TestAnyInterleavingWithRepeatsGivesTheSameOutputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := anyScripts(t)
		want := plainly(t, list)
		w := interleaved(t, list)
		w.judge(true)
		require.Equal(t, want.outputs, w.outputs)
	})
}

func TestRestartAtAnyPointChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := anyScripts(t)
		want := plainly(t, list)
		w := newWorld(t, list)
		w.inMemory = true
		w.settle()
		require.Equal(t, want.outputs, w.outputs)
	})
}

// Workers that answer nothing twice name what they answer. So whatever a crash loses, and whichever topic is read first
// after it, no answer is lost, and none is given to another step.
func TestCrashesLoseNoAnswerOfWorkersThatDropRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := anyScripts(t)
		want := plainly(t, list)
		w := newWorld(t, list)
		w.once = map[string]bool{}
		w.closeSteps(rapid.SampledFrom(pasts).Draw(t, "past"))
		var rows [][]byte // before each of w.sent
		for range rapid.IntRange(0, 80).Draw(t, "moves") {
			ready := w.ready()
			if len(ready) == 0 {
				break
			}
			rows = append(rows, w.row)
			w.deliver(rapid.SampledFrom(ready).Draw(t, "topic"))
			if rapid.IntRange(0, 5).Draw(t, "crash") == 0 {
				n := rapid.IntRange(1, min(20, len(rows))).Draw(t, "lost")
				w.crash(rows[len(rows)-n], n)
				rows = rows[:len(rows)-n]
			}
		}
		w.settle()
		w.judge(false)
		require.Equal(t, want.outputs, w.outputs)
		require.Empty(t, w.state().Early)
	})
}

// A crash in at-least-once loses the last rows and not their outputs: the records come again, in any order between
// topics, and the workers answer the repeated outputs again.
func TestCrashesRepeatOutputsAndChangeNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := scripts([]string{"answer"}, "ok", "early", "fail", "missing", "blank", "same").Draw(t, "scripts")
		// A response that was lost sight of is known by its longer history; after a turn that left none it is not.
		list[len(list)-1].End = rapid.SampledFrom(anyEnd).Draw(t, "last end")
		want := plainly(t, list)
		w := newWorld(t, list)
		w.closeSteps(rapid.SampledFrom(pasts).Draw(t, "past"))
		var rows [][]byte // before each of w.sent
		for range rapid.IntRange(0, 80).Draw(t, "moves") {
			ready := w.ready()
			if len(ready) == 0 {
				break
			}
			rows = append(rows, w.row)
			w.deliver(rapid.SampledFrom(ready).Draw(t, "topic"))
			if rapid.IntRange(0, 5).Draw(t, "crash") == 0 {
				n := w.losable(rapid.IntRange(1, min(8, len(rows))).Draw(t, "lost"))
				if n == 0 {
					continue
				}
				w.crash(rows[len(rows)-n], n)
				rows = rows[:len(rows)-n]
			}
		}
		w.settle()
		w.judge(false)
		require.Equal(t, want.outputs, w.outputs)
	})
}
