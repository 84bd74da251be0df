package turn

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/topics"
)

func withCosts(r *rules) { r.Costs = true }

func TestResponsesAreCharged(t *testing.T) {
	for name, c := range map[string]struct {
		costs string
		want  *float64
		calls int64
	}{
		"this step's":           {`"think_cost":0.25,"total_session_cost":9`, new(0.25), 1},
		"with a compaction":     {`"think_cost":0.25,"compaction":true,"compaction_cost":0.5`, new(0.75), 2},
		"the session's, before": {`"total_session_cost":3,"previous_session_cost":2.5`, new(0.5), 1},
		"older images":          {`"cost":0.125`, new(0.125), 1},
		"not known":             {`"total_session_cost":null`, nil, 1},
		"negative":              {`"total_session_cost":1,"previous_session_cost":2`, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withCosts, func(r *rules) { r.Tenants = TenantBefore("i") })
			asked := p.ask("one")
			value := fmt.Sprintf(`{"user_id":"mira","previous_messages":[],"last_input_message":%s,%s,%s}`, asked.LatestInput, c.costs,
				saying("hi"))
			row := p.row
			es := p.send("think-request-response", value)
			charged := the[modelCharged](t, es)
			require.Equal(t, c.want, charged.CostUSD)
			require.Equal(t, c.calls, charged.LLMCalls)
			require.Equal(t, []any{"s1", "mira", "m", int64(7), int64(3), p.now.UnixMilli()}, []any{
				*charged.SessionID, *charged.UserID, *charged.TenantID, charged.InputTokens, charged.OutputTokens, charged.AtMS,
			})
			late := p.send("think-request-response", value)
			require.Empty(t, emitted[modelCharged](late), "the row remembers the same response")
			p.row = row
			require.Equal(t, es.emits()[0].ID, p.send("think-request-response", value).emits()[0].ID)
		})
	}
}

func TestDeadLetteredResponseIsChargedWithOneID(t *testing.T) {
	p := newPlay(t, withCosts)
	p.respond(p.ask("one"), saying("hello"))
	late := `{"think_cost":0.25,"last_input_response":[],"end_turn":true}`
	first := p.send("think-request-response", late)
	require.NotEmpty(t, first.letters())
	require.Equal(t, first.ids(), p.send("think-request-response", late).ids())
	require.Equal(t, 0.25, *the[modelCharged](t, first).CostUSD)
}

func TestFailuresAndSummariesAreCharged(t *testing.T) {
	p := newPlay(t, withCosts)
	asked := p.ask("one")
	es := p.send("think-dlq", `{"latest_input":`+string(asked.LatestInput)+`}`, header(topics.HeaderCost, "0.5"))
	require.Equal(t, 0.5, *the[modelCharged](t, es).CostUSD)
	require.Equal(t, 0.5, *p.state().Spent)
	es = p.send("compaction-result", `{"compaction_id":"x","summary":"s","cost":0.25}`)
	require.Equal(t, 0.25, *the[modelCharged](t, es).CostUSD)
	require.NotEmpty(t, es.letters(), "it is charged although no turn waits for it")
}

func TestSummaryIsChargedToTheUserOfItsTurn(t *testing.T) {
	p := newPlay(t, withCosts)
	p.says("mira", "one", "eve")
	p.send("message-input", by("otto", message("two")))
	late := p.send("compaction-result", `{"compaction_id":"x","summary":"s","cost":0.25}`)
	require.Equal(t, "mira", *the[modelCharged](t, late).UserID, "the turn of otto asked for none")
}

// Older images report the cost of the call as that of the session: the sum counts.
func TestCostsPerCallReachTheLimitOfASession(t *testing.T) {
	for _, costs := range []bool{false, true} {
		p := newPlay(t, func(r *rules) { r.Costs, r.MaxCost = costs, 1 })
		for range 2 { // each says that the session has cost 0.5
			p.respond(p.ask("more"), saying("hello"))
		}
		es := p.send("message-input", message("and more"))
		require.Equal(t, costs, len(emitted[answered](es)) == 1)
		p.tombstone("think-request-response")
		require.Nil(t, p.state().Spent)
	}
}

// Whatever is repeated and whatever a crash takes back, the charges with different IDs add up to what the responses cost.
func TestChargesAddUpToTheCostsOfTheResponses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlay(rt, withCosts, withMemoir)
		charges := map[string]float64{}
		take := func(es effects) {
			for _, e := range es.emits() {
				if v, ok := e.Value.(modelCharged); ok {
					before, repeated := charges[e.ID]
					require.True(rt, !repeated || before == *v.CostUSD)
					charges[e.ID] = *v.CostUSD
				}
			}
		}
		responses, want := []string{}, 0.0
		rows := [][]byte{nil}
		for n := range rapid.IntRange(5, 30).Draw(rt, "events") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1:
				es := p.send("message-input", message(fmt.Sprint("question ", n)))
				for _, asked := range emitted[enriched](es) {
					responses = append(responses, fmt.Sprintf(`{"think_cost":%d,"previous_messages":%s,"last_input_message":%s,%s}`, n+1,
						topics.Splice(asked.History), asked.LatestInput, saying(fmt.Sprint("answer ", n))))
					want += float64(n + 1)
				}
				take(es)
			case 2, 3:
				if len(responses) > 0 {
					take(p.send("think-request-response", rapid.SampledFrom(responses).Draw(rt, "response")))
				}
			case 4:
				at := rapid.IntRange(0, len(rows)-1).Draw(rt, "row")
				p.row, p.parts = rows[at], map[uint32][]byte{}
				p.restart()
			case 5:
				take(p.wait(time.Duration(rapid.IntRange(1, 40).Draw(rt, "minutes")) * time.Minute))
			}
			if len(p.parts) == 0 {
				rows = append(rows, p.row)
			}
		}
		for _, r := range responses {
			take(p.send("think-request-response", r))
		}
		sum := 0.0
		for _, c := range charges {
			sum += c
		}
		require.Equal(rt, want, sum)
	})
}

// After a crash the response can be read before the message: it is charged when it is read, and not again when it is applied.
func TestHeldResponseIsChargedOnce(t *testing.T) {
	p := newPlay(t, withCosts)
	es := p.send("message-input", message("one"))
	asked, id := the[enriched](t, es), es.ids()[0]
	again := p.past[0]
	p.row = nil
	p.restart()
	es = p.send("think-request-response", response(asked, `"think_cost":0.25,`+saying("hello")), header(topics.HeaderID, id+"/0"))
	require.Equal(t, 0.25, *the[modelCharged](t, es).CostUSD)
	require.Len(t, p.state().Early, 1)
	es = p.repeat(again)
	require.Nil(t, the[answered](t, es).Error)
	require.Empty(t, emitted[modelCharged](es))
	require.Equal(t, 0.25, *p.state().Spent)
}
