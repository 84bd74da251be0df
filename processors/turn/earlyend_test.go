package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestHeldRecordExpires(t *testing.T) {
	early := map[string]func(p *play, asked enriched, id string) effects{
		"response": func(p *play, asked enriched, id string) effects {
			return p.send("think-request-response", response(asked, saying("x")), header(topics.HeaderID, id+"/think"))
		},
		"response without id": func(p *play, asked enriched, _ string) effects { return p.respond(asked, saying("x")) },
		"failure": func(p *play, _ enriched, id string) effects {
			return p.send("think-dlq", `{"error":"x"}`, header(topics.HeaderID, id+"/failure"))
		},
		"result": func(p *play, _ enriched, id string) effects {
			return p.send("tool-use-result", toolResult("t1", "x"),
				header(topics.HeaderID, strings.Replace(id, "enriched", "tool-use", 1)+"/result"))
		},
		"tool failure": func(p *play, _ enriched, id string) effects {
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
			require.Contains(t, describe(p.state()), "early")
			require.Empty(t, p.wait(p.rules.ThinkTimeout-time.Millisecond))
			out := p.wait(time.Millisecond)
			require.Equal(t, letters(reasonNotOpened), out.letters())
			for _, e := range out {
				require.Equal(t, p.past[1].source().Offset, e.(deadLetter).Held.Offset)
				require.Equal(t, p.past[1].source().Value, e.(deadLetter).Held.Value)
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
			require.Equal(t, topics.CodeCancelled, the[answered](t, out).Error.Code)
			require.Equal(t, letters(reasonTurnEnded), out.letters())
			require.Empty(t, p.state().Early)
		})
		t.Run(name+", defect", func(t *testing.T) {
			p, asked, id := lostTurn(t)
			send(p, asked, id)
			out := abandon(p.state(), p.key, internal, p.now, p.rules)
			require.Equal(t, letters(reasonTurnEnded), effects(out.Effects).letters())
			require.Empty(t, out.State.Early)
			require.LessOrEqual(t, out.State.Version, uint32(rowVersion))
		})
	}
}

// A record whose message waits is held as long as the message does, which may be longer than a step waits.
func TestAHeldRecordWaitsWithItsMessage(t *testing.T) {
	for name, named := range map[string]bool{"named by id": true, "named by echo": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.ask("first")
			p.send("message-input", message("second"))
			p.send("message-input", message("third"))
			third := turnID(p.key, p.past[2].source().Cause) + "/1/enriched/0"
			var opts []recordOption
			if named {
				opts = append(opts, header(topics.HeaderID, third+"/think"))
			}
			p.now = p.now.Add(-time.Minute) // it expires before the first turn does
			early := `{"previous_messages":null,"last_input_message":` + message("third") + `,` + saying("to the third") + `}`
			require.Empty(t, p.send("think-request-response", early, opts...))
			p.now = p.now.Add(time.Minute)
			var said []string
			for range 10 {
				if p.state().Turn == nil {
					break
				}
				out := p.wait(time.UnixMilli(p.state().DeadlineMs).Sub(p.now))
				require.Empty(t, out.letters())
				for _, o := range emitted[answered](out) {
					said = append(said, o.Content)
				}
			}
			require.Len(t, said, 3)
			require.Equal(t, "to the third", said[2])
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
			r := *e.source()
			r.Offset, r.Cause = 1000+int64(i), r.Cause+"/again"
			r.Value = []byte(strings.Replace(string(r.Value), `{`, `{"x":"`+phase+`",`, 1))
			again, ok := decode(p.topics, strings.TrimPrefix(r.Topic, agent+"-"), &r)
			require.True(t, ok)
			want := []string{reason}
			if _, ok := e.(messageArrived); ok {
				continue
			} else if _, ok := e.(toolAnswered); ok {
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
	late := response(the[enriched](t, out), saying("late"))
	require.Equal(t, []string{reasonNoStep}, p.send("think-request-response", late).letters())
	require.Equal(t, []string{reasonNoStep},
		p.send("think-request-response", late, header(topics.HeaderID, out.ids()[0]+"/think")).letters())
}

// A response without an id that echoes the input of a message that waits, or of one that was never seen with at least the
// session's history, is for that message.
func TestResponseThatEchoesAFutureStepIsHeld(t *testing.T) {
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
				require.Len(t, emitted[answered](out), 1)
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
func TestHeldEchoAnswersOnlyAStepWithItsHistory(t *testing.T) {
	p := newPlay(t)
	p.ask("one")
	early := response(enriched{History: topics.Raw(`[{},{}]`), LatestInput: topics.Raw(message("yes"))}, saying("later"))
	require.Empty(t, p.send("think-request-response", early))
	p.send("session-control", `{"action":"cancel"}`)
	asked := p.ask("yes")
	require.NotNil(t, p.state().Turn, "there is no history yet")
	require.Equal(t, "now", the[answered](t, p.respond(asked, saying("now"))).Content)
	out := p.send("message-input", message("yes"))
	require.Equal(t, "later", the[answered](t, out).Content)
}
