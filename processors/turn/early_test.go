package turn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// past is a session that went on while its rows were recorded: a crash goes back to one of them.
type past struct {
	*play
	events []Event
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
		if m, ok := e.(Emit); ok {
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
		asked := the[Enriched](t, out)
		return p.record("think-request-response", response(asked, more), name(out, len(out.ids())-1, "/think")...)
	}
	result := func(out effects, at int, said string) effects {
		id := *emitted[Called](out)[at].ToolUseID
		return p.record("tool-use-result", toolResult(id, said), name(out, at, "/result")...)
	}
	calls := respond(p.record("message-input", message("one")), calling("t1", "t2"))
	result(calls, 1, "of t2")
	calls = respond(result(calls, 0, "of t1"), calling("t1"))
	respond(result(calls, 0, "of t1 once more"), saying("done"))

	fail := func(out effects) {
		p.record("think-dlq", `{"latest_input":`+string(the[Enriched](t, out).LatestInput)+`}`, name(out, 0, "/failure")...)
	}
	if named {
		fail(p.record("message-input", message("two")))
		respond(p.record("message-input", message("two")), saying("at last"))
	} else {
		// Two questions after the same history could be told apart by an id alone, and a result without an id is held for
		// the open step alone.
		respond(p.record("message-input", message("two")), saying("at last"))
		fail(p.record("message-input", message("three")))
		p.early = slices.DeleteFunc(p.early, func(at int) bool { _, ok := p.events[at].(ToolAnswered); return ok })
	}
	return p
}

func TestAnAnswerThatOvertakesWhatItAnswersIsAppliedOnce(t *testing.T) {
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
	before, err := StateOf(table{p.rows[from], nil}.Value())
	require.NoError(p.tb, err)
	if before == nil {
		return true
	}
	turn, _, _ := strings.Cut(id, "/")
	d, _ := turnDigest(turn)
	return !remembers(before.Causes, d, p.now, p.rules.RememberFor)
}

func TestAllAnswersMayOvertakeWhatTheyAnswer(t *testing.T) {
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
				return strings.Compare(p.events[a].record().Topic, p.events[b].record().Topic)
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
func lostTurn(t tb, change ...func(*Rules)) (p *play, asked Enriched, id string) {
	p = newPlay(t, change...)
	p.lost(func() {
		out := p.send("message-input", requestMessage("hi", "r1"))
		asked, id = the[Enriched](t, out), out.ids()[0]
	})
	return p, asked, id
}

func TestAHeldResponseAnswersItsStepAlone(t *testing.T) {
	p, asked, id := lostTurn(t)
	early := response(asked, saying("to the lost one"))
	require.Empty(t, p.send("think-request-response", early, header(topics.HeaderID, id+"/think")))
	other := p.send("message-input", requestMessage("hi", "r2")) // the same question, in another turn
	require.Len(t, other, 1)
	require.NotEqual(t, id, other.ids()[0])
	out := p.respond(the[Enriched](t, other), saying("to the other one"))
	require.Equal(t, "to the other one", the[Answered](t, out).Content)

	out = p.repeat(p.past[0])
	require.Equal(t, id, out.ids()[0], "the enriched message is repeated")
	require.Equal(t, "to the lost one", the[Answered](t, out).Content)
	require.Empty(t, p.repeat(p.past[0]))
}

func TestAStepTakesTheFirstHeldResponseThatAnswersIt(t *testing.T) {
	p, asked, id := lostTurn(t)
	for i, more := range []string{`"end_turn":false`, saying("first"), saying("second")} {
		require.Empty(t, p.send("think-request-response", response(asked, more), header(topics.HeaderID, fmt.Sprint(id, "/", i))))
	}
	out := p.repeat(p.past[0])
	require.Equal(t, "first", the[Answered](t, out).Content, "no answer closes nothing")
	require.Equal(t, []string{reasonTurnEnded}, out.letters())
}

func TestTheSameResponseIsHeldOnce(t *testing.T) {
	p, asked, _ := lostTurn(t)
	require.Empty(t, p.respond(asked, saying("done")))
	require.Equal(t, []string{reasonHeldSame}, p.respond(asked, saying("done")).letters(), "at another offset")
	require.Equal(t, "done", the[Answered](t, p.repeat(p.past[0])).Content)
	require.Equal(t, []string{reasonSameResponse}, p.respond(asked, saying("done")).letters())
}

func TestAHeldRecordIsGivenUpInTime(t *testing.T) {
	early := map[string]func(p *play, asked Enriched, id string) effects{
		"response": func(p *play, asked Enriched, id string) effects {
			return p.send("think-request-response", response(asked, saying("x")), header(topics.HeaderID, id+"/think"))
		},
		"response without id": func(p *play, asked Enriched, _ string) effects { return p.respond(asked, saying("x")) },
		"failure": func(p *play, _ Enriched, id string) effects {
			return p.send("think-dlq", `{"error":"x"}`, header(topics.HeaderID, id+"/failure"))
		},
		"result": func(p *play, _ Enriched, id string) effects {
			return p.send("tool-use-result", toolResult("t1", "x"),
				header(topics.HeaderID, strings.Replace(id, "enriched", "tool-use", 1)+"/result"))
		},
		"tool failure": func(p *play, _ Enriched, id string) effects {
			return p.send("tool-use-dlq", `{"tool_use_id":"t1"}`,
				header(topics.HeaderID, strings.Replace(id, "enriched", "tool-use", 1)))
		},
	}
	for name, send := range early {
		letters := func(reason string) []string {
			if name == "tool failure" {
				return nil // it is on a dead-letter topic
			}
			return []string{reason}
		}
		t.Run(name+", no step", func(t *testing.T) {
			p, asked, id := lostTurn(t)
			require.Empty(t, send(p, asked, id))
			require.Equal(t, uint32(rowHeld), p.state().Version)
			require.Equal(t, p.now.Add(p.rules.ThinkTimeout).UnixMilli(), p.state().DeadlineMs)
			require.Contains(t, Describe(p.state()), "early")
			require.Empty(t, p.wait(p.rules.ThinkTimeout-time.Millisecond))
			out := p.wait(time.Millisecond)
			require.Equal(t, letters(reasonNotOpened), out.letters())
			for _, e := range out {
				require.Equal(t, p.past[1].record().Offset, e.(DeadLetter).Held.Offset)
				require.Equal(t, p.past[1].record().Value, e.(DeadLetter).Held.Value)
			}
			require.Empty(t, p.state().Early)
			p.wait(p.rules.RememberFor)
			require.Nil(t, p.row, "no row is left")
		})
		t.Run(name+", purge", func(t *testing.T) {
			p, asked, id := lostTurn(t)
			send(p, asked, id)
			require.Equal(t, letters(reasonPurged), p.send("session-control", `{"action":"purge"}`).letters())
			require.Empty(t, p.state().Early)
		})
		t.Run(name+", cancelled while its message waits", func(t *testing.T) {
			p, asked, id := lostTurn(t)
			p.ask("another")
			require.Empty(t, p.repeat(p.past[0]), "it waits")
			require.Empty(t, send(p, asked, id))
			require.Len(t, p.state().Early, 1)
			out := p.send("session-control", `{"action":"cancel","request_id":"r1"}`)
			require.Equal(t, topics.CodeCancelled, the[Answered](t, out).Error.Code)
			require.Equal(t, letters(reasonTurnEnded), out.letters())
			require.Empty(t, p.state().Early)
		})
		t.Run(name+", defect", func(t *testing.T) {
			p, asked, id := lostTurn(t)
			send(p, asked, id)
			out, _ := abandon(p.state(), p.key, p.now)
			require.Equal(t, letters(reasonTurnEnded), effects(out.Effects).letters())
			require.Empty(t, out.State.Early)
			require.LessOrEqual(t, out.State.Version, uint32(rowVersion))
		})
	}
}

// What answers a turn or a step that has ended is not held: its id, or its echo, says so.
func TestALateAnswerIsNotHeld(t *testing.T) {
	p := threeTurns(t, true)
	for _, phase := range []string{"no turn", "thinking", "tools"} {
		reason := reasonNoStep
		switch phase {
		case "thinking":
			p.ask("next")
			reason = reasonOtherStep
		case "tools":
			p.send("think-request-response", `{"tool_uses":[{"tool_use_id":"t1","name":"look"}]}`)
		}
		for i, e := range p.events {
			r := *e.record()
			r.Offset, r.Cause = 1000+int64(i), r.Cause+"/again"
			r.Value = []byte(strings.Replace(string(r.Value), `{`, `{"x":"`+phase+`",`, 1))
			again, ok := decode(p.topics, strings.TrimPrefix(r.Topic, agent+"-"), &r)
			require.True(t, ok)
			want := []string{reason}
			if _, ok := e.(MessageArrived); ok {
				continue
			} else if _, ok := e.(ToolAnswered); ok {
				want = []string{reasonCallEnded}
			}
			before := p.row
			require.Equal(t, want, p.apply(again).letters(), "%s, event %d", phase, i)
			require.Equal(t, before, p.row)
		}
	}
}

func TestAPurgedTurnsAnswerIsNotHeld(t *testing.T) {
	p := newPlay(t)
	out := p.send("message-input", message("hi"))
	p.send("session-control", `{"action":"purge"}`)
	late := response(the[Enriched](t, out), saying("late"))
	require.Equal(t, []string{reasonNoStep}, p.send("think-request-response", late).letters())
	require.Equal(t, []string{reasonNoStep},
		p.send("think-request-response", late, header(topics.HeaderID, out.ids()[0]+"/think")).letters())
}

// A response without an id that echoes the input of a message that waits, or of one that was never seen with at least the
// session's history, is for that message.
func TestEchoesOfStepsToCome(t *testing.T) {
	for name, c := range map[string]struct {
		previous, input, more string
		want                  string // the reason, or "held", or "counts"
	}{
		"waits":                               {`[{},{}]`, message("waits"), "", "held"},
		"waits, with any history":             {`[]`, message("waits"), "", "held"},
		"waits, compacted":                    {`[]`, message("waits"), `"compaction":true,`, "held"},
		"never seen, more history":            {`[{},{}]`, message("new"), "", "held"},
		"never seen, as much history":         {`[]`, message("new"), "", "counts"},
		"closed, more history":                {`[{},{}]`, message("closed"), "", reasonOtherStep},
		"closed":                              {`[]`, message("closed"), "", reasonOtherStep},
		"unreadable, more history than there": {`[{},{}]`, `null`, "", "counts"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.ask("closed")
			p.send("session-control", `{"action":"cancel"}`)
			p.ask("open")
			p.send("message-input", message("waits"))
			out := p.send("think-request-response", fmt.Sprintf(
				`{"previous_messages":%s,"last_input_message":%s,%s"end_turn":true}`, c.previous, c.input, c.more))
			held := len(p.state().Early)
			switch c.want {
			case "held":
				require.Empty(t, out)
				require.Equal(t, 1, held)
			case "counts":
				require.Len(t, emitted[Answered](out), 1)
				require.Zero(t, held)
			default:
				require.Equal(t, []string{c.want}, out.letters())
				require.Zero(t, held)
			}
		})
	}
}

// Without an id a held response counts for a step with that very input and that much history, not for one that asks the
// same after another history.
func TestAnEchoIsHeldForItsHistory(t *testing.T) {
	p := newPlay(t)
	p.ask("one")
	early := response(Enriched{History: topics.Raw(`[{},{}]`), LatestInput: topics.Raw(message("yes"))}, saying("later"))
	require.Empty(t, p.send("think-request-response", early))
	p.send("session-control", `{"action":"cancel"}`)
	asked := p.ask("yes")
	require.NotNil(t, p.state().Turn, "there is no history yet")
	require.Equal(t, "now", the[Answered](t, p.respond(asked, saying("now"))).Content)
	out := p.send("message-input", message("yes"))
	require.Equal(t, "later", the[Answered](t, out).Content)
}

// A step may have a thousand calls, whose workers drop the repeated calls after a crash.
func TestResultsOfAStepAreHeldAsFarAsTheRowHasRoom(t *testing.T) {
	for _, n := range []int{100, maxCalls} {
		t.Run(fmt.Sprint(n, " calls"), func(t *testing.T) {
			p := newPlay(t)
			asked := p.ask("one")
			ids := make([]string, n)
			for i := range ids {
				ids[i] = fmt.Sprint("c", i)
			}
			asks := response(asked, calling(ids...))
			var calls []string
			p.lost(func() { calls = p.send("think-request-response", asks).ids() })
			for i, id := range ids {
				opts := []recordOption{header(topics.HeaderID, calls[i]+"/result")}
				require.Empty(t, p.send("tool-use-result", toolResult(id, "of "+id), opts[i%2:]...))
			}
			out := p.send("think-request-response", asks)
			require.Empty(t, out.letters())
			for i, r := range the[Completed](t, out).Results {
				require.Contains(t, string(r.Result), "of "+ids[i]+`"`)
			}
		})
	}
}

func TestHeldRecordsAreBounded(t *testing.T) {
	named := func(i int) recordOption {
		return header(topics.HeaderID, fmt.Sprintf("%s/1/tool-use/%d/result", strings.Repeat("0", 32), i))
	}
	for name, c := range map[string]struct {
		open bool
		held func(s *State) []*Held
	}{
		"for the open step":  {true, func(s *State) []*Held { return s.Turn.Held }},
		"for a step to come": {false, func(s *State) []*Held { return s.Early }},
	} {
		start := func(t *testing.T, held int) *play {
			p := newPlay(t)
			if c.open {
				p.ask("hi")
			}
			send := func(i int) { p.send("tool-use-result", toolResult(fmt.Sprint("t", i), "x"), named(i)) }
			if c.open {
				send = func(i int) { p.result(fmt.Sprint("t", i), "x") }
			}
			send(0)
			s := p.state()
			list := c.held(s)
			for range held - 1 {
				list = append(list, list[0])
			}
			if c.open {
				s.Turn.Held = list
			} else {
				s.Early = list
			}
			var err error
			p.row, err = EncodeState(s)
			require.NoError(t, err)
			return p
		}
		send := func(p *play, text string) effects {
			if c.open {
				return p.result("more", text)
			}
			return p.send("tool-use-result", toolResult("more", text), named(9999))
		}
		t.Run(name+", in number", func(t *testing.T) {
			p := start(t, maxHeld)
			require.Equal(t, []string{reasonHeldFull}, send(p, "x").letters())
			p = start(t, maxHeld-1)
			require.Empty(t, send(p, "x"))
		})
		t.Run(name+", in bytes", func(t *testing.T) {
			p := start(t, 1)
			require.Equal(t, []string{reasonNoRoom}, send(p, strings.Repeat("x", p.rules.RowLimit)).letters())
		})
	}
}

// What is held is given up before anything that was accepted, or is remembered.
func TestHeldRecordsGiveWay(t *testing.T) {
	big := strings.Repeat("x", 600<<10)
	t.Run("to a conversation", func(t *testing.T) {
		p := newPlay(t)
		asked := p.ask("hi")
		p.send("message-input", message("waits"))
		early := response(Enriched{LatestInput: topics.Raw(message("waits"))}, saying(big))
		require.Empty(t, p.send("think-request-response", early))
		require.Empty(t, p.result("t9", "held for the open step"))
		out := p.respond(asked, `"last_input_response":[{"role":"assistant","content":"`+strings.Repeat("y", 400<<10)+`"}],`+
			`"tool_uses":[{"tool_use_id":"t1","name":"look"}]`)
		require.Equal(t, []string{reasonNoRoom}, out.letters())
		require.Len(t, p.state().Waiting, 1)
		require.Len(t, p.state().Turn.Held, 1)
	})
	t.Run("to a message", func(t *testing.T) {
		p := newPlay(t)
		p.ask("hi")
		early := response(Enriched{History: topics.Raw(`[{}]`), LatestInput: topics.Raw(message("later"))}, saying(big))
		require.Empty(t, p.send("think-request-response", early))
		out := p.send("message-input", message(strings.Repeat("y", 400<<10)))
		require.Equal(t, []string{reasonNoRoom}, out.letters())
		require.Len(t, p.state().Waiting, 1)
	})
	t.Run("to memory", func(t *testing.T) {
		p, asked, _ := lostTurn(t)
		require.Empty(t, p.respond(asked, saying(big)))
		known := len(p.state().Causes)
		p.rules.RowLimit = len(p.row)
		out := p.send("message-input", message("another"))
		require.Equal(t, []string{reasonNoRoom}, out.letters())
		require.Len(t, emitted[Enriched](out), 1)
		require.Greater(t, len(p.state().Causes), known)
	})
}

func TestAHeldRecordThatCannotBeReadIsGivenUp(t *testing.T) {
	for _, kind := range []Held_Kind{Held_RESPONSE, Held_THINK_FAILURE, Held_TOOL} {
		p, _, id := lostTurn(t)
		turn, _, _ := strings.Cut(id, "/")
		var err error
		p.row, err = EncodeState(&State{Version: rowHeld, DeadlineMs: 1, Early: []*Held{
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
	s.Turn.Held = []*Held{
		{ToolUseId: "t1", Value: []byte("{"), Result: &Result{ToolUseId: ptr("t1"), Result: []byte(`{"said":"older"}`)}},
		{ToolUseId: "t2", Value: []byte("{"), Failure: true, Result: &Result{ToolUseId: ptr("t2"), Result: []byte(`{"error":"broken"}`)}},
	}
	var err error
	p.row, err = EncodeState(s)
	require.NoError(t, err)
	content := string(the[ToolMessage](t, p.respond(asked, calling("t1", "t2"))).Content)
	has(t, content, "older")
	has(t, content, `"tool_use_id":"t2","name":"look","result":{"error":"broken"}`)
}
