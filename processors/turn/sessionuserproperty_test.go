package turn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/topics"
)

// Whatever users the workers name, and whatever turns fail: the words of a user's message are in the snapshots of that user and of
// conversations of several users only, and the cost of a response is charged to the user whose budget was checked.
func TestWordsOfAUserReachNoOtherMemory(t *testing.T) {
	names := rapid.SampledFrom([]string{"mira", "otto", topics.PlaceholderUser})
	workers := rapid.SampledFrom([]string{"mira", "eve", ""})
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlay(rt, withMemoir, withCosts, func(r *rules) { r.HistoryLimit.Messages = rapid.SampledFrom([]int{0, 4}).Draw(rt, "limit") })
		speakers := map[string]string{} // by word
		var asked []enriched
		take := func(es effects) {
			asked = append(asked, emitted[enriched](es)...)
			for _, e := range es.emits() {
				v, ok := e.Value.(memoirSession)
				if !ok {
					continue
				}
				if v.UserID != nil {
					require.Equal(rt, e.Key, *v.UserID)
				}
				users := map[string]bool{}
				for word, user := range speakers {
					if strings.Contains(string(v.ThinkResponse.PreviousMessages), word) {
						users[topics.MemoryKey(p.key, &user)] = true
					}
				}
				if delete(users, e.Key); len(users) > 0 {
					require.Equal(rt, topics.SharedMemoryKey(p.key), e.Key, "%v", users)
				}
			}
		}
		kept, parts, read := p.row, maps.Clone(p.parts), 0
		for n := range rapid.IntRange(5, 40).Draw(rt, "events") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0, 1, 2:
				user, word := names.Draw(rt, "user"), fmt.Sprintf("word-%d.", n)
				speakers[word] = user
				take(p.send("message-input", by(user, message(word))))
			case 3, 4, 5:
				if len(asked) == 0 {
					continue
				}
				e := asked[rapid.IntRange(max(0, len(asked)-2), len(asked)-1).Draw(rt, "step")]
				more := saying("ok")
				if rapid.IntRange(0, 3).Draw(rt, "calls") == 0 {
					more = calling(fmt.Sprintf("t%d", n))
				}
				value := by(workers.Draw(rt, "worker"), response(e, fmt.Sprintf(`"think_cost":%d,%s`, n+1, more)))
				echoes := rapid.Bool().Draw(rt, "echoes")
				if !echoes { // whose message it is
					value = strings.NewReplacer(`"user_id":"mira","role"`, `"role"`, `"user_id":"otto","role"`, `"role"`).Replace(value)
				}
				es := p.send("think-request-response", value)
				for _, c := range emitted[modelCharged](es) {
					require.True(rt, !echoes || *e.UserID == *c.UserID)
				}
				take(es)
				for _, c := range emitted[called](es) {
					if rapid.Bool().Draw(rt, "answered") {
						take(p.result(*c.ToolUseID, "x"))
					}
				}
			case 6:
				take(p.send("session-control", `{"action":"cancel"}`))
			case 7:
				take(p.wait(time.Duration(rapid.IntRange(1, 60).Draw(rt, "minutes")) * time.Minute))
			case 8:
				if rapid.Bool().Draw(rt, "tombstone") {
					take(p.tombstone("think-request-response"))
				}
			case 9:
				if rapid.Bool().Draw(rt, "keep") {
					kept, parts, read = p.row, maps.Clone(p.parts), len(p.past)
					continue
				}
				again := slices.Clone(p.past[read:]) // a crash: rows are lost, and their records are read again
				p.row, p.parts, p.past = kept, maps.Clone(parts), p.past[:read]
				p.restart()
				for _, e := range again {
					take(p.repeat(e))
				}
			}
		}
		take(p.send("session-control", `{"action":"cancel"}`))
		take(p.wait(2 * endsAfter))
	})
}
