package turn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// past is a session that went on while its rows were recorded: a crash goes back to one of them.
type past struct {
	*play
	events []event
	rows   [][]byte // before each event
	early  []int    // events that may be read before the records that they answer
	wrote  map[string]string
}

// record applies an event of the past.
func (p *past) record(topic, value string, opts ...recordOption) effects {
	p.tb.Helper()
	p.rows = append(p.rows, p.row)
	out := p.send(topic, value, opts...)
	require.Empty(p.tb, out.letters())
	p.events = append(p.events, p.past[len(p.past)-1])
	if topic != "message-input" {
		p.early = append(p.early, len(p.events)-1)
	}
	p.note(p.wrote, out)
	return out
}

func (p *past) note(wrote map[string]string, out effects) {
	p.tb.Helper()
	for _, e := range out {
		if m, ok := e.(emit); ok {
			wrote[m.ID] = plain(m.Value)
		}
	}
}

// replay goes back to the row before an event, hands over some later ones first, and then all from that event on. It
// returns what was written.
func (p *past) replay(from int, first ...int) map[string]string {
	p.tb.Helper()
	p.row = p.rows[from]
	p.parts = maps.Clone(p.partsOf[string(p.row)])
	if p.parts == nil {
		p.parts = map[uint32][]byte{}
	}
	wrote := map[string]string{}
	for _, at := range first {
		out := p.repeat(p.events[at])
		require.Empty(p.tb, out.letters(), "event %d is held by the row before event %d", at, from)
		p.note(wrote, out)
		require.Empty(p.tb, p.repeat(p.events[at]), "the same record again")
	}
	for _, e := range p.events[from:] {
		out := p.repeat(e)
		require.Empty(p.tb, out.letters())
		p.note(wrote, out)
	}
	require.Nil(p.tb, p.state().Turn)
	require.Empty(p.tb, p.state().Early)
	require.LessOrEqual(p.tb, p.state().Version, uint32(rowVersion), "nothing is held: older builds read the row")
	return wrote
}

// threeTurns has a turn of three steps whose calls have one id twice, one that is answered at once, and one that fails.
// The workers name what they answer by its id, or by the input that they echo.
func threeTurns(t tb, named bool) *past {
	p := &past{play: newPlay(t), wrote: map[string]string{}}
	name := func(out effects, at int, suffix string) (opts []recordOption) {
		if named {
			ids := out.ids()
			opts = append(opts, header(topics.HeaderID, ids[at]+suffix))
		}
		return opts
	}
	respond := func(out effects, more string) effects {
		asked := the[enriched](t, out)
		return p.record("think-request-response", response(asked, more), name(out, len(out.ids())-1, "/think")...)
	}
	result := func(out effects, at int, said string) effects {
		id := *emitted[called](out)[at].ToolUseID
		return p.record("tool-use-result", toolResult(id, said), name(out, at, "/result")...)
	}
	calls := respond(p.record("message-input", message("one")), calling("t1", "t2"))
	result(calls, 1, "of t2")
	calls = respond(result(calls, 0, "of t1"), calling("t1"))
	respond(result(calls, 0, "of t1 once more"), saying("done"))

	fail := func(out effects) {
		p.record("think-dlq", `{"latest_input":`+string(the[enriched](t, out).LatestInput)+`}`, name(out, 0, "/failure")...)
	}
	if named {
		fail(p.record("message-input", message("two")))
		respond(p.record("message-input", message("two")), saying("at last"))
	} else {
		// Two questions after the same history could be told apart by an id alone, and a result without an id is held for
		// the open step alone.
		respond(p.record("message-input", message("two")), saying("at last"))
		fail(p.record("message-input", message("three")))
		p.early = slices.DeleteFunc(p.early, func(at int) bool { _, ok := p.events[at].(toolAnswered); return ok })
	}
	return p
}

func TestAnswerThatArrivesBeforeItsStepIsAppliedOnce(t *testing.T) {
	for name, named := range map[string]bool{"named by id": true, "named by echo": false} {
		t.Run(name, func(t *testing.T) {
			p := threeTurns(t, named)
			for from := range p.events {
				for _, at := range p.early {
					if at < from {
						continue
					}
					t.Run(fmt.Sprintf("event %d before event %d", at, from), func(t *testing.T) {
						p.tb = t
						wrote := p.replay(from, at)
						for id, value := range wrote {
							require.Equal(t, p.wrote[id], value, id)
						}
						for id := range p.wrote {
							if strings.HasSuffix(id, "/output/0") && p.writes(from, id) {
								require.Contains(t, wrote, id)
							}
						}
					})
				}
			}
		})
	}
}

// writes reports whether an id was written from an event on.
func (p *past) writes(from int, id string) bool {
	before, err := stateOf(table{p.rows[from], nil}.Value())
	require.NoError(p.tb, err)
	if before == nil {
		return true
	}
	turn, _, _ := strings.Cut(id, "/")
	d, _ := turnDigest(turn)
	return !remembers(before.Causes, d, p.now, p.rules.RememberFor)
}

func TestAllAnswersMayArriveBeforeTheirSteps(t *testing.T) {
	p := threeTurns(t, true)
	for from := range p.events {
		t.Run(fmt.Sprint("from event ", from), func(t *testing.T) {
			p.tb = t
			var first []int
			for _, at := range p.early {
				if at >= from {
					first = append(first, at)
				}
			}
			// Each topic has its order.
			slices.SortStableFunc(first, func(a, b int) int {
				return strings.Compare(p.events[a].source().Topic, p.events[b].source().Topic)
			})
			for id, value := range p.replay(from, first...) {
				require.Equal(t, p.wrote[id], value, id)
			}
		})
	}
}

// lost applies f and loses the rows that it wrote, not its outputs.
func (p *play) lost(f func()) {
	row, parts := p.row, maps.Clone(p.parts)
	f()
	p.row, p.parts = row, parts
}

// lostTurn is a session whose row was lost after its first message was asked.
func lostTurn(t tb, change ...func(*rules)) (p *play, asked enriched, id string) {
	p = newPlay(t, change...)
	p.lost(func() {
		out := p.send("message-input", requestMessage("hi", "r1"))
		asked, id = the[enriched](t, out), out.ids()[0]
	})
	return p, asked, id
}

func TestHeldResponseAnswersOnlyItsStep(t *testing.T) {
	p, asked, id := lostTurn(t)
	early := response(asked, saying("to the lost one"))
	require.Empty(t, p.send("think-request-response", early, header(topics.HeaderID, id+"/think")))
	other := p.send("message-input", requestMessage("hi", "r2")) // the same question, in another turn
	require.Len(t, other, 1)
	require.NotEqual(t, id, other.ids()[0])
	out := p.respond(the[enriched](t, other), saying("to the other one"))
	require.Equal(t, "to the other one", the[answered](t, out).Content)

	out = p.repeat(p.past[0])
	require.Equal(t, id, out.ids()[0], "the enriched message is repeated")
	require.Equal(t, "to the lost one", the[answered](t, out).Content)
	require.Empty(t, p.repeat(p.past[0]))
}

// Workers that set no id repeat their answers with other timestamps. A step takes one of them; the others must not stay in
// the row.
func TestClosedStepGivesUpOtherHeldAnswersToIt(t *testing.T) {
	for name, first := range map[string]string{"answer": saying("first"), "calls": `"tool_uses":[{"tool_use_id":"t1","name":"look"}]`} {
		t.Run(name, func(t *testing.T) {
			p, asked, _ := lostTurn(t)
			for _, more := range []string{first, saying("second"), saying("third")} {
				require.Empty(t, p.send("think-request-response", response(asked, more)))
			}
			require.Len(t, p.state().Early, 3)
			out := p.repeat(p.past[0])
			require.Equal(t, []string{reasonOtherStep, reasonOtherStep}, out.letters())
			require.Empty(t, p.state().Early)
		})
	}
}

func TestAStepTakesTheFirstHeldResponseThatAnswersIt(t *testing.T) {
	p, asked, id := lostTurn(t)
	for i, more := range []string{`"end_turn":false`, saying("first"), saying("second")} {
		require.Empty(t, p.send("think-request-response", response(asked, more), header(topics.HeaderID, fmt.Sprint(id, "/", i))))
	}
	out := p.repeat(p.past[0])
	require.Equal(t, "first", the[answered](t, out).Content, "no answer closes nothing")
	require.Equal(t, []string{reasonTurnEnded}, out.letters())
}

func TestTheSameResponseIsHeldOnce(t *testing.T) {
	p, asked, _ := lostTurn(t)
	require.Empty(t, p.respond(asked, saying("done")))
	require.Equal(t, []string{reasonHeldSame}, p.respond(asked, saying("done")).letters(), "at another offset")
	require.Equal(t, "done", the[answered](t, p.repeat(p.past[0])).Content)
	require.Equal(t, []string{reasonSameResponse}, p.respond(asked, saying("done")).letters())
}

func TestAHeldRecordThatCannotBeReadIsGivenUp(t *testing.T) {
	for _, kind := range []turnrow.Held_Kind{turnrow.Held_RESPONSE, turnrow.Held_THINK_FAILURE, turnrow.Held_TOOL} {
		p, _, id := lostTurn(t)
		turn, _, _ := strings.Cut(id, "/")
		var err error
		p.row, err = turnrow.Table.Marshal(&turnrow.State{Version: rowHeld, DeadlineMs: 1, Early: []*turnrow.Held{
			{Kind: kind, TurnId: turn, Step: 1, Value: []byte("{"), ExpiresMs: p.now.Add(time.Hour).UnixMilli()},
		}})
		require.NoError(t, err)
		out := p.repeat(p.past[0])
		require.Equal(t, []string{reasonUnreadable}, out.letters())
		require.NotNil(t, p.state().Turn)
	}
}

// Rows of older builds hold results and not only records.
func TestResultsThatAnOlderBuildHeldAreClaimed(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	s := p.state()
	s.Version = rowVersion
	s.Turn.Held = []*turnrow.Held{
		{ToolUseId: "t1", Value: []byte("{"), Result: &turnrow.Result{ToolUseId: ptr("t1"), Result: []byte(`{"said":"older"}`)}},
		{ToolUseId: "t2", Value: []byte("{"), Failure: true, Result: &turnrow.Result{ToolUseId: ptr("t2"), Result: []byte(`{"error":"broken"}`)}},
	}
	var err error
	p.row, err = turnrow.Table.Marshal(s)
	require.NoError(t, err)
	content := string(the[toolMessage](t, p.respond(asked, calling("t1", "t2"))).Content)
	has(t, content, "older")
	has(t, content, `"tool_use_id":"t2","name":"look","result":{"error":"broken"}`)
}

// A result that names a step to come is held for the open step later than a result that names none, though it came first.
func TestTheFirstHeldResultOfACallCounts(t *testing.T) {
	for name, unnamedFirst := range map[string]bool{"names its call": false, "names no call": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			out := p.send("message-input", message("one"))
			turn, _ := turnOf(out.ids()[0])
			results := []func(){
				func() {
					p.send("tool-use-result", toolResult("t2", "named"), header(topics.HeaderID, turn+"/2/tool-use/0/result"))
				},
				func() { p.result("t2", "unnamed") },
			}
			want := `{"said":"named"}`
			if unnamedFirst {
				slices.Reverse(results)
				want = `{"said":"unnamed"}`
			}
			for _, f := range results {
				f()
			}
			p.respond(the[enriched](t, out), calling("t1"))
			out = p.respond(the[enriched](t, p.result("t1", "x")), calling("t2"))
			require.Contains(t, string(the[toolMessage](t, out).Content), want)
		})
	}
}
