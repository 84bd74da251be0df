package memoir

import (
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/topics"
)

// The topics of the group.
const (
	sessions = iota
	memories
	failures
	inputs // their number
)

// world is the group of one user with its topics and workers. A worker adds the end of each snapshot to the memory that the
// snapshot has, so the text shows which sessions are in it.
type world struct {
	*harness
	logs    [inputs][]event
	read    [inputs]int // offsets
	sent    []snapshotSent
	done    int          // snapshots that the updater without versions has answered or left out
	replied map[int]bool // the snapshots in sent that a worker with versions has replied to
	replies map[string]reply
	excused map[string]bool // sessions that need not be in the memory: blank, edited away or forgotten
	dead    map[string]bool
	ends    []string

	foreign bool
	// back takes the group back to its last cut. committed is how many snapshots were sent before that.
	back      func()
	committed int
}

func newWorld(t tb, foreign bool, limit int, patience time.Duration) *world {
	w := &world{
		harness: newHarness(t, func(c *Config) {
			c.Limit, c.PendingLimit, c.Patience = 1<<10, limit, patience
			if foreign {
				c.Passes = 20 // it leaves out many snapshots
			}
			c.RememberCount, c.RememberFor = 4000, 1000*c.RememberFor // an expired digest allows a repeat
		}),
		replied: map[int]bool{}, replies: map[string]reply{}, excused: map[string]bool{}, dead: map[string]bool{}, foreign: foreign,
	}
	w.mark()
	return w
}

// mark makes a cut. After a crash under at least once, what was written since is still there. With an updater without versions the
// outputs since the cut are taken back, as under exactly once, because such an updater must get each snapshot once.
func (w *world) mark() {
	kept, read, sent := newHarness(w.TB), w.read, len(w.sent)
	kept.Restore(&w.World)
	w.committed = sent
	w.back = func() {
		w.Restore(&kept.World)
		w.read = read
		if w.foreign {
			w.sent = w.sent[:sent]
		}
	}
}

func (w *world) write(log int, e event) { w.logs[log] = append(w.logs[log], e) }

func tokens(memory string) []string { return strings.Fields(memory) }

// apply applies an event and checks that nothing gets lost by it.
func (w *world) apply(e event) {
	w.TB.Helper()
	before := w.Read()
	es := w.handle(e)
	after := w.Read()
	old, now := tokens(before.GetMemory()), tokens(after.GetMemory())
	m, written := e.(memoryWritten)
	byHand := written && m.Version == "" && !w.foreign // a person, without the header of an edit
	replaces := written && (m.Tombstone() || m.Version == topics.MemoirEdit) || byHand
	if written && m.Version == "" && !m.Tombstone() && w.foreign && !w.remembered(before, m) {
		require.True(w.TB, before.Abandoned > 0 || (&transition{row: before}).open() != nil, "the pass of an answer is open")
	}
	for _, end := range old {
		if !slices.Contains(now, end) {
			require.True(w.TB, replaces, "%s was in the memory: %q, now %q", end, old, now)
			w.excused[end] = true
		}
	}
	for _, end := range w.ends {
		if w.isDone(before, end) || !w.isDone(after, end) {
			continue
		}
		if forgotten(before, end) || written && (m.Tombstone() || blank(m.Text) && !w.foreign) {
			w.excused[end] = true
			continue
		}
		require.True(w.TB, written, "%T", e)
		if !w.excused[end] {
			require.Contains(w.TB, now, end, "a session is done when it is in the memory")
		}
	}
	for _, effect := range es {
		switch {
		case effect.Topic != "":
			f := sentOf(w.TB, effect)
			require.False(w.TB, w.isDone(before, *f.Snapshot.SessionID), "an ended session is sent until it is done")
			w.sent = append(w.sent, f)
		case effect.Held != nil:
			f := deadOf(w.TB, effect)
			require.NotEmpty(w.TB, f.Value)
			w.dead[f.End] = true
		default:
			_, ended := e.(sessionEnded)
			require.False(w.TB, ended, "an ended session has a snapshot before it is dead-lettered")
			end, _, _ := passOf(causeOf(e))
			if effect.Reason == reasonForeign || effect.Reason == reasonMemorySize && w.isLate(after, end) {
				w.dead[end] = true // the answer has its content
			}
		}
	}
}

func (w *world) remembered(s *memoirrow.State, m memoryWritten) bool {
	return s != nil && (&transition{row: s}).isRepeat(m.ID)
}

// isDone reports whether a session has ended. A memory without a version ends only those of FlightDeck's updater.
func (w *world) isDone(s *memoirrow.State, end string) bool {
	t := &transition{row: s}
	return s != nil && (t.isMerged(end) || w.foreign && t.isDone(end))
}

// isLate reports whether a memory without a version has ended a session whose snapshot is no longer kept.
func (w *world) isLate(s *memoirrow.State, end string) bool {
	t := &transition{row: s}
	return s != nil && t.endedByForeign(end) && t.kept(end) == nil && t.find(end) == nil
}

func causeOf(e event) string {
	switch f := e.(type) {
	case memoryWritten:
		return f.ID
	case passFailed:
		return f.ID
	}
	return ""
}

// reply is what a worker with versions wrote for a snapshot: a memory or a failure.
type reply struct {
	log   int
	event event
}

// reply lets a worker with versions write its record for a snapshot in sent.
func (w *world) reply(i, log int, e event) {
	w.replied[i], w.replies[w.sent[i].ID] = true, reply{log, e}
	w.write(log, e)
}

// replyNext lets a worker with versions reply to the first snapshot that has no reply: with a memory, or with what it wrote when it
// read the snapshot before. It returns false if there is none.
func (w *world) replyNext() bool {
	for i, s := range w.sent {
		if w.replied[i] {
			continue
		}
		r, ok := w.replies[s.ID]
		if !ok {
			r = reply{memories, w.answer(s, text(s))}
		}
		w.reply(i, r.log, r.event)
		return true
	}
	return false
}

func forgotten(s *memoirrow.State, end string) bool {
	return s != nil && (&transition{row: s}).find(end).GetForgotten()
}

// text is what a worker makes of a snapshot.
func text(s snapshotSent) string {
	return strings.TrimSpace(s.Snapshot.MemoirContext + " " + *s.Snapshot.SessionID)
}

// next lets the updater without versions read its next snapshot. ok is false if there is none.
func (w *world) next() (s snapshotSent, ok bool) {
	if w.done == len(w.sent) {
		return s, false
	}
	if w.done == w.committed {
		w.mark() // it reads only what is committed
	}
	w.done++
	return w.sent[w.done-1], true
}

// answerNext lets the updater without versions answer its next snapshot.
func (w *world) answerNext(change func(string) string) {
	if s, ok := w.next(); ok {
		m := w.harness.foreign(change(text(s)))
		if blank(m.Text) {
			w.excused[*s.Snapshot.SessionID] = true
		}
		w.write(memories, m)
	}
}

func maxTime(now time.Time, ms int64) time.Time {
	if at := time.UnixMilli(ms).UTC(); at.After(now) {
		return at
	}
	return now
}

func same(text string) string { return text }
func empty(string) string     { return " " }
func (w *world) long() string { return strings.Repeat("x", w.config.Limit+1) }
func (w *world) unread() []int { // topics with unread records
	var list []int
	for i, log := range w.logs {
		if w.read[i] < len(log) {
			list = append(list, i)
		}
	}
	return list
}

func (w *world) readFrom(log int) {
	w.read[log]++
	w.apply(w.logs[log][w.read[log]-1])
}
