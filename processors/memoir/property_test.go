package memoir

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func (w *world) move(t *rapid.T) {
	moves := []string{"end", "end", "read", "read", "read", "read", "answer", "answer", "answer", "blank", "long", "edit", "cut", "crash"}
	if w.foreign {
		moves = append(moves, "forget", "leave out", "time", "time")
	} else {
		moves = append(moves, "forget", "again", "fail", "time", "time", "repeat", "by hand")
	}
	which := func() (int, snapshotSent) {
		i := rapid.IntRange(max(0, len(w.sent)-6), len(w.sent)-1).Draw(t, "which")
		return i, w.sent[i]
	}
	switch move := rapid.SampledFrom(moves).Draw(t, "move"); {
	case move == "end":
		end := fmt.Sprint("s", len(w.ends))
		w.ends = append(w.ends, end)
		w.write(sessions, w.ended(end))
	case move == "read":
		if list := w.unread(); len(list) > 0 {
			w.readFrom(rapid.SampledFrom(list).Draw(t, "topic"))
		}
	case move == "edit":
		w.write(memories, w.edit(fmt.Sprint("edit", w.Offset)))
	case move == "forget":
		if rapid.IntRange(0, 4).Draw(t, "forget") == 0 {
			w.write(memories, w.tombstone())
		}
	case move == "cut":
		w.mark()
	case move == "crash":
		w.back()
	case w.foreign && move == "answer":
		w.answerNext(same)
	case w.foreign && move == "blank":
		w.answerNext(empty)
	case w.foreign && move == "long":
		w.answerNext(func(string) string { return w.long() })
	case move == "leave out":
		w.next()
	case move == "time":
		if w.Row != nil && len(w.Read().Pending) > 0 && w.inTime() {
			w.fire()
		}
	case move == "repeat":
		if list := w.logs[memories]; len(list) > 0 {
			w.write(memories, rapid.SampledFrom(list).Draw(t, "memory"))
		}
		if list := w.logs[sessions]; len(list) > 0 {
			w.write(sessions, rapid.SampledFrom(list).Draw(t, "session"))
		}
	case move == "by hand":
		w.write(memories, w.harness.foreign(rapid.SampledFrom([]string{"by hand", " "}).Draw(t, "text")))
	case len(w.sent) == 0:
	case move == "answer":
		i, s := which()
		w.reply(i, memories, w.answer(s, text(s)))
	case move == "blank":
		i, s := which()
		w.reply(i, memories, w.answer(s, ""))
	case move == "long":
		i, s := which()
		w.reply(i, memories, w.answer(s, w.long()))
	case move == "fail":
		i, s := which()
		w.reply(i, failures, w.failure(s))
	}
}

// inTime reports whether no answer of the updater without versions is late at the next deadline: it answers in time or not at
// all.
func (w *world) inTime() bool {
	at := w.Read().DeadlineMs
	late := func(s snapshotSent) bool { return s.DueMs <= max(at, w.Now.UnixMilli()) }
	return !w.foreign || w.read[memories] == len(w.logs[memories]) && !slices.ContainsFunc(w.sent[w.done:], late)
}

func (w *world) fire() {
	w.TB.Helper()
	w.Now = maxTime(w.Now, w.Read().DeadlineMs)
	w.apply(deadlineCame{})
}

// finish reads everything and lets a worker reply to all that is sent, until nothing waits.
func (w *world) finish() {
	w.TB.Helper()
	for {
		for _, log := range w.unread() {
			w.readFrom(log)
		}
		switch {
		case len(w.unread()) > 0:
		case w.foreign && w.done < len(w.sent):
			w.answerNext(same)
		case !w.foreign && w.replyNext():
		case w.Row != nil && len(w.Read().Pending) > 0:
			w.fire()
		default:
			return
		}
	}
}

// check checks that every ended session is in the memory, or that there is a reason why it is not.
func (w *world) check() {
	w.TB.Helper()
	memory := tokens(w.Read().GetMemory())
	for _, end := range w.ends {
		if !w.excused[end] && !w.dead[end] {
			require.Contains(w.TB, memory, end)
		}
	}
	for _, s := range w.sent {
		require.Contains(w.TB, w.ends, *s.Snapshot.SessionID)
	}
}

func TestNoMemoryIsLost(t *testing.T) {
	for name, foreign := range map[string]bool{"workers with versions": false, "FlightDeck's updater": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(t, foreign, rapid.IntRange(1, 5).Draw(t, "limit"), rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "patience"))
				for range rapid.IntRange(0, 120).Draw(t, "moves") {
					w.move(t)
				}
				w.finish()
				w.check()
				if !foreign { // repeat everything
					for log := range w.logs {
						for _, e := range slices.Clone(w.logs[log]) {
							w.apply(e)
						}
					}
					w.finish()
					w.check()
				}
			})
		})
	}
}

func TestEqualEventsGiveEqualOutcomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, false, 5, time.Second)
		for range rapid.IntRange(0, 60).Draw(t, "moves") {
			w.move(t)
		}
		one, two := newHarness(t), newHarness(t)
		for _, log := range w.logs {
			for _, e := range log {
				require.Equal(t, one.handle(e).Records(), two.handle(e).Records())
				require.Equal(t, one.Row, two.Row)
			}
		}
	})
}
