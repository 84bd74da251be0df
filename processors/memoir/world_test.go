package memoir

import (
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

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
	logs    [inputs][]Event
	read    [inputs]int // offsets
	sent    []SnapshotSent
	done    int             // snapshots that the updater without versions has answered or left out
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
		harness: newHarness(t, func(r *Rules) {
			r.Limit, r.PendingLimit, r.Patience = minLimit, limit, patience
			if foreign {
				r.Passes = 20 // it leaves out many snapshots
			}
			r.RememberCount, r.RememberFor = maxRemember, 1000*r.RememberFor // an expired digest allows a repeat
		}),
		excused: map[string]bool{}, dead: map[string]bool{}, foreign: foreign,
	}
	w.mark()
	return w
}

// mark makes a cut. After a crash under at least once, what was written since is still there. With an updater without versions the
// outputs since the cut are taken back, as under exactly once, because such an updater must get each snapshot once.
func (w *world) mark() {
	kept, read, sent := newHarness(w.tb), w.read, len(w.sent)
	w.copyTo(kept)
	w.committed = sent
	w.back = func() {
		kept.copyTo(w.harness)
		w.read = read
		if w.foreign {
			w.sent = w.sent[:sent]
		}
	}
}

func (w *world) write(log int, e Event) { w.logs[log] = append(w.logs[log], e) }

func tokens(memory string) []string { return strings.Fields(memory) }

// apply applies an event and checks that nothing gets lost by it.
func (w *world) apply(e Event) {
	w.tb.Helper()
	before := w.state()
	effects := w.handle(e)
	after := w.state()
	old, now := tokens(before.GetMemory()), tokens(after.GetMemory())
	m, written := e.(MemoryWritten)
	replaces := written && (m.tombstone() || m.Version == topics.MemoirEdit)
	if written && m.Version == "" && !m.tombstone() && !w.remembered(before, m) {
		require.True(w.tb, before.Abandoned > 0 || (&transition{row: before}).open() != nil, "the pass of an answer is open")
	}
	for _, end := range old {
		if !slices.Contains(now, end) {
			require.True(w.tb, replaces, "%s was in the memory: %q, now %q", end, old, now)
			w.excused[end] = true
		}
	}
	for _, end := range w.ends {
		if isDone(before, end) || !isDone(after, end) {
			continue
		}
		if forgotten(before, end) || written && (m.tombstone() || blank(m.Text) && !w.foreign) {
			w.excused[end] = true
			continue
		}
		require.True(w.tb, written, "%T", e)
		if !w.excused[end] {
			require.Contains(w.tb, now, end, "a session is done when it is in the memory")
		}
	}
	for _, effect := range effects {
		switch f := effect.(type) {
		case SnapshotSent:
			require.False(w.tb, isDone(before, *f.Snapshot.SessionID), "an ended session is sent until it is done")
			w.sent = append(w.sent, f)
		case SnapshotDead:
			require.NotEmpty(w.tb, f.Value)
			w.dead[f.End] = true
		case DeadLetter:
			_, ended := e.(SessionEnded)
			require.False(w.tb, ended, "an ended session has a snapshot before it is dead-lettered")
		}
	}
}

func (w *world) remembered(s *State, m MemoryWritten) bool {
	return s != nil && (&transition{row: s}).isRepeat(m.Cause)
}

func isDone(s *State, end string) bool {
	return s != nil && (&transition{row: s}).isDone(end)
}

func forgotten(s *State, end string) bool {
	return s != nil && (&transition{row: s}).find(end).GetForgotten()
}

// text is what a worker makes of a snapshot.
func text(s SnapshotSent) string {
	return strings.TrimSpace(s.Snapshot.MemoirContext + " " + *s.Snapshot.SessionID)
}

// next lets the updater without versions read its next snapshot. ok is false if there is none.
func (w *world) next() (s SnapshotSent, ok bool) {
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
func (w *world) long() string { return strings.Repeat("x", w.rules.Limit+1) }
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
