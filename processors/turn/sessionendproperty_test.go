package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/topics"
)

// Whatever is read, and whatever rows a crash takes back: a session does not end beside a turn, a route, a gate or a held record,
// an end has one snapshot, a repeat is equal, and each exchange whose answer was accepted is in a snapshot or in the history.
func TestEndsOfSessionsLoseNoExchange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlay(rt, withMemoir, withGates)
		published := map[string]emit{} // snapshots by ID
		settled := map[string]bool{}   // exchanges whose answers were accepted and whose rows were not taken back
		asked := map[string]enriched{} // by question
		question := ""
		rows := [][]byte{nil}
		isOpen := func() bool {
			s := p.state()
			return s != nil && (s.Turn != nil || len(s.Routes)+len(s.Early)+len(s.OtherGates) > 0)
		}
		var gates []gateRequested
		take := func(es effects, open bool) {
			ends := emitted[memoirSession](es)
			require.Equal(rt, len(ends), len(emitted[sessionEnded](es)))
			require.Equal(rt, len(ends), len(emitted[forgotten](es)))
			require.LessOrEqual(rt, len(ends), 1)
			// A deadline can close things before the end, but opens none after it.
			require.False(rt, len(ends) > 0 && (open || isOpen()), "something is open")
			for _, e := range es.emits() {
				if v, ok := e.Value.(memoirSession); ok {
					before, repeated := published[e.ID]
					require.True(rt, !repeated || string(before.Value.(memoirSession).Messages) == string(v.Messages),
						"a repeat has the same conversation")
					published[e.ID] = e
				}
			}
		}
		for n := range rapid.IntRange(5, 40).Draw(rt, "events") {
			open := isOpen()
			switch rapid.IntRange(0, 10).Draw(rt, "what") {
			case 0, 1:
				question = fmt.Sprintf("question %d.", n)
				es := p.send("message-input", message(question))
				for _, e := range emitted[enriched](es) {
					asked[question] = e
				}
				take(es, true)
			case 2, 3:
				if e, ok := asked[question]; ok {
					es := p.respond(e, saying("answer to "+question))
					if len(es.letters()) == 0 && len(emitted[answered](es)) > 0 && emitted[answered](es)[0].Error == nil {
						settled[question] = true
					}
					take(es, true)
				}
			case 4:
				p.now = p.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(rt, "minutes")) * time.Minute)
				row, parts := p.row, p.parts
				es := p.wait(0)
				take(es, false)
				if len(es) > 0 && len(parts) == 0 { // the row is lost, its outputs are not
					p.row, p.parts = row, map[uint32][]byte{}
					p.restart()
					require.Equal(rt, es, p.wait(0), "a repeat has the same IDs and bytes")
				}
			case 5:
				take(p.send("session-control", `{"action":"end"}`), open)
			case 6:
				take(p.send("reply-to", fmt.Sprintf(`{"to":%d}`, n)), true)
			case 7:
				turn := rapid.SampledFrom([]string{"", p.state().GetLastTurn(), p.state().GetTurn().GetMessage().GetTurnId()}).Draw(rt, "turn")
				ttl := time.Duration(rapid.IntRange(0, 90).Draw(rt, "ttl")) * time.Minute
				gates = append(gates, foldGate(p, fmt.Sprint("g", n), turn, ttl))
				take(p.request(gates[len(gates)-1]), true)
			case 8:
				if len(gates) > 0 {
					gate := gates[rapid.IntRange(max(0, len(gates)-2), len(gates)-1).Draw(rt, "gate")]
					take(p.send("gate-outcomes", gateEnd(gate, topics.GateApproved)), true)
				}
			case 9: // a crash lost the row of the step that it answers
				es := p.send("think-request-response", fmt.Sprintf(`{"timestamp":"%d",%s}`, n, saying("early")),
					header(topics.HeaderID, fmt.Sprintf("%032x/1/enriched/0/think", n)))
				require.Empty(rt, es.letters())
				require.NotEmpty(rt, p.state().Early)
				take(es, true)
			case 10:
				at := rapid.IntRange(max(0, len(rows)-4), len(rows)-1).Draw(rt, "row")
				lost := p.row
				p.row, p.parts = rows[at], map[uint32][]byte{}
				p.restart()
				if string(lost) != string(p.row) { // what the lost rows accepted is read again by the rest of the history
					settled = map[string]bool{}
				}
			}
			if len(p.parts) == 0 {
				rows = append(rows, p.row)
			}
			all := ""
			if s := p.state(); s != nil {
				all = string(s.History)
			}
			for _, e := range published {
				all += string(e.Value.(memoirSession).Messages)
			}
			for q := range settled {
				require.True(rt, strings.Contains(all, "answer to "+q), "%s is in no snapshot and no history", q)
			}
		}
	})
}
