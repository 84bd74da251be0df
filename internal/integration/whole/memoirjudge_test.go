package whole

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// judge compares the memories and the snapshots with what users said.
func (d *memoirWorld) judge() {
	said := map[string][]string{}
	for n := range d.sessions {
		said[d.user(n)] = append(said[d.user(n)], d.facts(n)...)
	}
	for user, facts := range said {
		d.eventuallyKnown(user, facts)
	}
	d.judgeSnapshots()
	d.judgeEnds()
}

// judgeSnapshots checks that each session has its whole conversation in its snapshots: exactly once, one exchange after the
// other, under exactly once. After a crash at least once a later snapshot may have an earlier conversation again.
func (d *memoirWorld) judgeSnapshots() {
	type snapshot struct {
		end   string
		facts []string
	}
	snapshots := map[string][]snapshot{} // by session, without further passes of the same end
	for _, r := range d.all(d.catalog.MemoirContextSessionEnd.Name()) {
		v := d.catalog.MemoirContextSessionEnd.Codec().Unmarshal(r.Value)
		require.NoError(d.t, v.Err)
		session := *v.Value.SessionID
		if strings.HasPrefix(session, "probe-") {
			continue
		}
		end, _, ok := strings.Cut(headerOf(r, topics.HeaderID), "/")
		require.True(d.t, ok, "the snapshot of %s has no ID", session)
		var facts []string
		answered := true
		for m, err := range topics.Messages(v.Value.ThinkResponse.PreviousMessages) {
			require.NoError(d.t, err)
			switch *m.Role {
			case "user":
				require.True(d.t, answered, "%s ended before an answer", session)
				facts, answered = append(facts, factsIn(topics.Text(m.Content))...), false
			default:
				answered = true
			}
		}
		require.True(d.t, answered, "%s ended before an answer", session)
		require.Equal(d.t, v.Value.ThinkResponse.PreviousMessages, v.Value.Messages)
		same := slices.IndexFunc(snapshots[session], func(s snapshot) bool { return s.end == end })
		if same >= 0 {
			require.Equal(d.t, snapshots[session][same].facts, facts, "two snapshots of one end of %s", session)
			continue
		}
		snapshots[session] = append(snapshots[session], snapshot{end, facts})
	}
	for n := range d.sessions {
		session := fmt.Sprintf("s%03d", n)
		var all []string
		for _, s := range snapshots[session] {
			all = append(all, s.facts...)
		}
		if d.guarantee == processors.AtLeastOnce {
			slices.Sort(all)
			all = slices.Compact(all)
		}
		require.Equal(d.t, d.facts(n), all, session)
	}
}

// judgeEnds checks that no session ended sooner after an output than it may be idle, and that under exactly once each end has
// one record.
func (d *memoirWorld) judgeEnds() {
	const slack = 100 * time.Millisecond // timestamps of one callback differ by milliseconds
	outputs := d.all(d.catalog.MessageOutput.Name())
	ends := map[string]bool{}
	for _, r := range d.all(d.catalog.SessionEnd.Name()) {
		require.Equal(d.t, "{}", string(r.Value))
		id := headerOf(r, topics.HeaderID)
		require.False(d.t, ends[id] && d.guarantee == processors.ExactlyOnce, "two records of one end of %s", r.Key)
		ends[id] = true
		for _, o := range outputs {
			idle := r.Timestamp.Sub(o.Timestamp)
			require.False(d.t, string(o.Key) == string(r.Key) && idle >= 0 && idle < memoirAfter-slack,
				"%s ended %v after an output", r.Key, idle)
		}
	}
	d.t.Logf("%d sessions, %d ends, %d outputs", d.sessions, len(ends), len(outputs))
}
