package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// Whatever hides messages from the model, and whatever the row has no room for: each goes to the memory of the user.
func TestEveryFactReachesTheMemory(t *testing.T) {
	for name, change := range map[string]func(*rules){
		"whole history":        func(*rules) {},
		"limit in messages":    func(r *rules) { r.HistoryLimit.Messages = 6 },
		"limit of one message": func(r *rules) { r.HistoryLimit.Messages = 1 },
		"limit in bytes":       func(r *rules) { r.HistoryLimit.Bytes = 10 << 10 },
		"small row":            func(r *rules) { r.RowLimit, r.HistoryLimit.Bytes = 64<<10, 20<<10 },
		"compactor":            func(r *rules) { compactor(r); r.HistoryLimit.Messages = 20 },
		"small record":         func(r *rules) { r.RecordLimit, r.RowLimit, r.Memoir.ContextBytes = 128<<10, 64<<10, 20<<10 },
	} {
		for _, worker := range []string{"keeps", "compacts"} {
			for _, parts := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/worker %s/parts %v", name, worker, parts), func(t *testing.T) {
					p := newPlay(t, withMemoir, change)
					if !parts {
						p.parts = nil
					}
					var es effects
					for n := range 300 {
						now := p.sendUnchecked("message-input", message(fmt.Sprintf("fact %d.", n)))
						if requests := emitted[compactionRequested](now); len(requests) > 0 {
							es = append(es, now...)
							now = p.sendUnchecked("compaction-result", summarized(requests[0], `"summary":"The story."`))
						}
						asked := the[enriched](t, now)
						if worker == "compacts" && n%10 == 9 {
							asked.History = topics.Raw(`[{"role":"assistant","content":"[Conversation Summary]\nThe story."}]`)
						}
						es = append(append(es, now...), p.sendUnchecked("think-request-response",
							response(asked, saying(strings.Repeat("a", 500)+fmt.Sprint(n))+`,"compaction":true`))...)
					}
					es = append(es, p.wait(endsAfter)...)
					require.Empty(t, p.state().Hidden)
					require.Empty(t, es.letters())
					var all strings.Builder
					ids := map[string]bool{}
					for _, e := range es.emits() {
						if v, ok := e.Value.(memoirSession); ok {
							require.Equal(t, "mira", e.Key)
							require.False(t, ids[e.ID])
							ids[e.ID] = true
							require.Equal(t, string(v.ThinkResponse.PreviousMessages), string(v.Messages))
							require.LessOrEqual(t, len(v.Messages), snapshotBytes)
							all.Write(v.Messages)
						}
					}
					for n := range 300 {
						require.Equal(t, 1, strings.Count(all.String(), fmt.Sprintf(`"fact %d."`, n)), "fact %d", n)
						require.Equal(t, 1, strings.Count(all.String(), fmt.Sprintf(`a%d"`, n)), "answer %d", n)
					}
				})
			}
		}
	}
}

func TestLongConversationBecomesSeveralSnapshots(t *testing.T) {
	p := newPlay(t, withMemoir, func(r *rules) { r.Memoir.ContextBytes, r.HistoryLimit.Bytes = 300<<10, r.RowLimit })
	for _, c := range []string{"a", "b", "c", "d", "e"} {
		p.respond(p.ask(c), saying(strings.Repeat(c, 50<<10)))
	}
	history := string(p.state().History)
	es := p.wait(endsAfter)
	require.Len(t, emitted[sessionEnded](es), 1)
	snapshots := emitted[memoirSession](es)
	require.Len(t, snapshots, 3)
	var parts []topics.Raw
	for _, v := range snapshots {
		parts = append(parts, v.Messages)
		require.Contains(t, string(v.Messages[:100]), `"role":"user"`, "each begins with an exchange")
		snapshot := topics.MemoirSnapshot(v)
		snapshot.MemoirContext = strings.Repeat("m", p.rules.Memoir.ContextBytes)
		raw, err := p.topics.MemoirSessions.Codec().Marshal(snapshot)
		require.NoError(t, err)
		require.LessOrEqual(t, len(raw)+envelope, p.rules.RecordLimit, "there is room for the memory")
	}
	require.True(t, history == string(topics.Splice(parts...)))
}

func TestMessageThatIsTooLongForARecordIsCutVisibly(t *testing.T) {
	p := newPlay(t, withMemoir, func(r *rules) { r.Memoir.ContextBytes = r.RecordLimit / 2 })
	p.respond(p.ask("one"), `"last_input_response":[{"role":"assistant","content":"`+strings.Repeat("x", 480<<10)+
		`"},{"role":"assistant","content":"the answer"}],"end_turn":true`)
	snapshots := emitted[memoirSession](p.wait(endsAfter))
	require.Len(t, snapshots, 3)
	require.Contains(t, string(snapshots[0].Messages), `"one"`)
	require.Contains(t, string(snapshots[1].ThinkResponse.PreviousMessages), "xxxx…")
	require.Greater(t, len(snapshots[1].ThinkResponse.PreviousMessages), 200<<10)
	require.Contains(t, string(snapshots[1].Messages), "xxxx…")
	require.Equal(t, `[{"role":"assistant","content":"the answer"}]`, string(snapshots[2].Messages))
}

// An answer to another user makes the memory that of no user, also for what is hidden.
func TestHiddenExchangesOfSeveralUsersGoToNoUsersMemory(t *testing.T) {
	p := newPlay(t, withMemoir, func(r *rules) { r.HistoryLimit.Messages = 2 })
	p.exchange("one", "a1")
	p.respond(the[enriched](t, p.send("message-input", strings.Replace(message("two"), "mira", "omar", 1))), saying("a2"))
	p.exchange("three", "a3")
	require.NotEmpty(t, p.state().Hidden)
	for _, e := range p.wait(endsAfter).emits() {
		if v, ok := e.Value.(memoirSession); ok {
			require.Equal(t, topics.SharedMemoryKey("s1"), e.Key)
			require.Contains(t, string(v.Messages), `"one"`)
		}
	}
}

func TestSnapshotHasTheCostsOfTheLastResponse(t *testing.T) {
	p := talked(t)
	p.respond(p.ask("two"), saying("again")+`,"previous_session_cost":0.3,"think_cost":0.2`)
	response := the[memoirSession](t, p.wait(endsAfter)).ThinkResponse
	require.Equal(t, 0.3, *response.PreviousSessionCost)
	require.Equal(t, 0.2, *response.ThinkCost)
	require.Equal(t, 0.5, *response.TotalSessionCost)
	p.respond(p.ask("three"), saying("hello"))
	require.Nil(t, the[memoirSession](t, p.wait(endsAfter)).ThinkResponse.ThinkCost, "of the session that has ended")
}
