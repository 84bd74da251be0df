package turn

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

const endsAfter = 30 * time.Minute

func withMemoir(r *rules) {
	r.Memoir = &Memoir{After: endsAfter, ContextBytes: 64 << 10}
}

// talked is a session that had one turn.
func talked(t tb, change ...func(*rules)) *play {
	t.Helper()
	p := newPlay(t, append([]func(*rules){withMemoir}, change...)...)
	p.respond(p.ask("one"), saying("hello"))
	return p
}

func (es effects) emits() (list []emit) {
	for _, e := range es {
		if m, ok := e.(emit); ok {
			list = append(list, m)
		}
	}
	return list
}

func TestIdleSessionEndsWithItsWholeConversation(t *testing.T) {
	p := talked(t)
	history, last, ends := string(p.state().History), p.state().LastTurn, topics.Timestamp(p.now.Add(endsAfter))
	require.NotEmpty(t, last)
	require.Equal(t, uint32(rowMemoir), p.stored().Version)
	require.Empty(t, p.wait(endsAfter-time.Millisecond))
	row := p.row
	p.now = p.now.Add(time.Hour) // the deadline is noticed late
	es := p.wait(0)
	emits := es.emits()
	require.Len(t, emits, 3)
	require.Equal(t, sessionEnded{}, emits[0].Value)
	require.Equal(t, forgotten{}, emits[1].Value)
	require.Equal(t, []string{"s1", "s1", "mira"}, []string{emits[0].Key, emits[1].Key, emits[2].Key})
	end, _, _ := strings.Cut(emits[0].ID, "/")
	require.NotEqual(t, last, end)
	require.Equal(t, []string{end + "/session-end/0", end + "/tombstone/0", end + "/snapshot/1"}, es.ids())
	v := emits[2].Value.(memoirSession)
	require.Equal(t, history, string(v.ThinkResponse.PreviousMessages))
	require.Equal(t, history, string(v.Messages))
	require.Equal(t, ends, *v.Timestamp, "the time of the deadline, not the time at which it was noticed")
	require.Equal(t, 0.5, *v.ThinkResponse.TotalSessionCost)
	require.Equal(t, "mira", *v.UserID)
	require.True(t, v.ThinkResponse.EndTurn)

	s := p.state()
	require.Empty(t, s.History)
	require.Nil(t, s.UserId)
	require.Empty(t, s.LastTurn)
	require.Equal(t, 0.5, *s.Cost, "the cost stays")
	require.NotEmpty(t, s.Causes)
	require.Empty(t, p.wait(time.Hour), "it ends once")

	p.row = row // a crash loses the row and not its outputs
	p.now = p.now.Add(time.Minute)
	require.Equal(t, es, p.wait(0), "a repeat has the same IDs and bytes")
}

func TestNextMessageAfterTheEndBeginsANewConversation(t *testing.T) {
	p := talked(t)
	first := p.wait(endsAfter).ids()
	asked := p.ask("two")
	require.Empty(t, asked.History)
	require.Equal(t, 0.5, *asked.Cost)
	p.respond(asked, saying("again"))
	es := p.wait(endsAfter)
	require.Len(t, es.ids(), 3)
	require.NotEqual(t, first, es.ids())
	require.NotContains(t, string(the[memoirSession](t, es).Messages), "hello")
}

func TestEndOfASessionDoesNotRenewItsBudget(t *testing.T) {
	p := talked(t, func(r *rules) { r.MaxCost, r.Costs = 1, true })
	p.respond(p.ask("two"), saying("again")) // the worker reports the cost of the call as that of the session
	require.Less(t, *p.state().Cost, *p.state().Spent)
	require.Len(t, p.wait(endsAfter).ids(), 3)
	es := p.send("message-input", message("three"))
	require.Empty(t, emitted[enriched](es))
	require.Equal(t, topics.CodeOverBudget, the[answered](t, es).Error.Code)
}

func TestEndedSessionIsRemovedWhenItsMemoriesExpire(t *testing.T) {
	p := talked(t)
	p.wait(endsAfter)
	p.wait(24*time.Hour - endsAfter - time.Millisecond)
	require.NotNil(t, p.row)
	p.wait(time.Millisecond)
	require.Nil(t, p.row)
}

func TestIdleSessionIsPurgedAfterItsEnd(t *testing.T) {
	for _, idle := range []time.Duration{time.Minute, 2 * endsAfter} {
		p := talked(t, func(r *rules) { r.IdlePurge = idle })
		require.Empty(t, p.wait(min(idle, endsAfter)-time.Millisecond))
		es := p.wait(endsAfter)
		require.Len(t, the[memoirSession](t, es).Messages, len(es.emits()[2].Value.(memoirSession).Messages))
		p.wait(idle)
		require.Nil(t, p.state().Cost)
	}
}

func TestAnyRecordPostponesTheEnd(t *testing.T) {
	for name, read := range map[string]func(*play) effects{
		"late response": func(p *play) effects {
			return p.send("think-request-response", `{"last_input_message":null,"last_input_response":[],"end_turn":true}`)
		},
		"late result": func(p *play) effects { return p.result("t9", "x") },
		"cancel":      func(p *play) effects { return p.send("session-control", `{"action":"cancel"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			p := talked(t)
			p.now = p.now.Add(endsAfter - time.Millisecond)
			require.NotEmpty(t, read(p).letters())
			require.Empty(t, p.wait(endsAfter-time.Millisecond))
			require.Len(t, p.wait(time.Millisecond).ids(), 3)
		})
	}
}

func TestSessionWithSomethingOpenDoesNotEnd(t *testing.T) {
	for name, c := range map[string]struct{ open, end func(*play) }{
		"turn": {
			func(p *play) { p.ask("two") },
			func(p *play) { p.send("session-control", `{"action":"cancel"}`) },
		},
		"route": {
			func(p *play) { p.send("reply-to", `{"to":1}`) },
			func(p *play) { p.tombstone("reply-to") },
		},
		"held record": {
			func(p *play) { // after a crash, the response to a message is read before the message
				row := p.row
				es := p.send("message-input", message("two"))
				p.row = row
				p.restart()
				p.send("think-request-response", response(the[enriched](p.tb, es), saying("early")),
					header(topics.HeaderID, es.ids()[0]+"/think"))
				require.Len(p.tb, p.state().Early, 1)
			},
			func(p *play) {
				asks := slices.IndexFunc(p.past, func(e event) bool {
					m, ok := e.(messageArrived)
					return ok && topics.Text(m.Message.Content) == "two"
				})
				require.NotEmpty(p.tb, emitted[answered](p.repeat(p.past[asks])))
			},
		},
		"gate without a turn": {
			func(p *play) { p.request(foldGate(p, "g1", "", 0)) },
			func(p *play) { p.send("gate-outcomes", gateEnd(foldGate(p, "g1", "", 0), topics.GateApproved)) },
		},
		"gate of an ended turn": {
			func(p *play) { p.request(foldGate(p, "g1", p.state().LastTurn, 0)) },
			func(p *play) {
				p.send("gate-outcomes", gateEnd(foldGate(p, "g1", p.state().LastTurn, 0), topics.GateApproved))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := talked(t, func(r *rules) {
				r.Gates, r.Delivery = true, true
				r.ThinkTimeout, r.RouteTTL = 100*time.Hour, 100*time.Hour
			})
			c.open(p)
			for range 4 {
				require.Empty(t, emitted[sessionEnded](p.wait(endsAfter)))
				require.NotNil(t, p.row)
			}
			p.send("session-control", `{"action":"end"}`)
			require.NotEmpty(t, p.state().LastTurn)
			c.end(p)
			require.Len(t, emitted[memoirSession](p.wait(endsAfter)), 1)
		})
	}
}

// The topics have no common order: the outcome of a gate can be read before its request.
func TestGateThatEndedBeforeItWasReadDoesNotHoldTheSession(t *testing.T) {
	p := talked(t, func(r *rules) { r.Gates = true })
	gate := foldGate(p, "g1", "", 0)
	p.send("gate-outcomes", gateEnd(gate, topics.GateApproved))
	p.request(gate)
	require.Len(t, emitted[memoirSession](p.wait(endsAfter)), 1)
}

// A message and the deadline at the same time: whichever is first, the message has its turn and no exchange is lost.
func TestMessageAtTheTimeOfTheEndIsNotLost(t *testing.T) {
	for _, endFirst := range []bool{true, false} {
		p := talked(t)
		p.now = p.now.Add(endsAfter)
		var snapshots []memoirSession
		if endFirst {
			snapshots = append(snapshots, emitted[memoirSession](p.wait(0))...)
		}
		asked := p.ask("two")
		require.Empty(t, p.apply(deadlineCame{Session: p.key}).ids(), "a deadline of before the message ends nothing")
		require.Equal(t, endFirst, len(asked.History) == 0)
		p.respond(asked, saying("goodbye"))
		snapshots = append(snapshots, emitted[memoirSession](p.wait(endsAfter))...)
		all := ""
		for _, s := range snapshots {
			all += string(s.ThinkResponse.PreviousMessages)
		}
		for _, said := range []string{"one", "hello", "two", "goodbye"} {
			require.Equal(t, 1, strings.Count(all, `"`+said+`"`))
		}
	}
}

// A crash takes the row back to before the end, whose outputs stay, and the response to the next turn is read at once.
func TestSessionThatGoesOnAfterALostEndEndsAgainWithTheWholeConversation(t *testing.T) {
	p := talked(t)
	row := p.row
	first := p.wait(endsAfter)
	p.row = row
	p.restart()
	asked := p.ask("two")
	require.NotEmpty(t, asked.History)
	p.respond(asked, saying("goodbye"))
	again := p.wait(endsAfter)
	require.NotEqual(t, first.ids(), again.ids())
	require.Contains(t, string(the[memoirSession](t, again).Messages), "hello")
}

func TestOwnTombstoneIsIgnored(t *testing.T) {
	p := talked(t)
	es := p.wait(endsAfter)
	p.respond(p.ask("two"), saying("again"))
	row := p.row
	e, ok := p.event("think-request-response", nil, header(topics.HeaderID, es.ids()[1]))
	require.True(t, ok)
	require.True(t, e.writtenByTurn())
	require.Empty(t, p.apply(e))
	require.Equal(t, row, p.row)

	p.tombstone("think-request-response") // another writer's clears the conversation, so nothing is left to end
	require.Empty(t, p.state().History)
	require.Empty(t, p.wait(endsAfter))
}

func TestControlEndsASession(t *testing.T) {
	p := talked(t)
	e, ok := p.event("session-control", []byte(`{"action":"end"}`))
	require.True(t, ok)
	at := p.now
	p.now = p.now.Add(time.Minute)
	row := p.row
	es := p.apply(e)
	require.Equal(t, topics.Timestamp(at), *the[memoirSession](t, es).Timestamp)
	p.row = row
	require.Equal(t, es, p.repeat(e), "a repeat after a crash is equal")
	require.Empty(t, p.repeat(e))
	require.Equal(t, []string{reasonNotEnded}, p.send("session-control", `{"action":"end"}`).letters(), "nothing is left to end")

	asked := p.ask("two")
	early, ok := p.event("session-control", []byte(`{"action":"end"}`))
	require.True(t, ok)
	require.Equal(t, []string{reasonNotEnded}, p.apply(early).letters())
	p.respond(asked, saying("x"))
	require.Empty(t, p.repeat(early), "a repeat does not end a later conversation")

	off := newPlay(t)
	off.respond(off.ask("one"), saying("hello"))
	require.Equal(t, []string{reasonEndOff}, off.send("session-control", `{"action":"end"}`).letters())
}

func TestStepsGoToTheMemoryOfTheirUser(t *testing.T) {
	p := newPlay(t, withMemoir)
	es := p.send("message-input", message("one"))
	require.Equal(t, "mira", es.emits()[0].Key)
	d, err := p.bind.encodeEmit(es.emits()[0])
	require.NoError(t, err)
	require.Equal(t, p.topics.MemoirLookups.Stream(), d.stream)
	other := newPlay(t, withMemoir)
	es = other.send("message-input", strings.Replace(message("one"), "mira", topics.PlaceholderUser, 1))
	require.Equal(t, "s1", es.emits()[0].Key)
}

func TestUserWithoutAMemoryOfItsOwnHasThatOfTheSession(t *testing.T) {
	for name, user := range map[string]string{
		"placeholder": topics.PlaceholderUser, "blank": " ", "NUL": "mira\x00", "reserved": "__offset", "long": strings.Repeat("u", maxID),
	} {
		t.Run(name, func(t *testing.T) {
			named := func(record string) string {
				return strings.Replace(record, `"user_id":"mira"`, `"user_id":`+string(appendText(nil, &user)), 1)
			}
			p := newPlay(t, withMemoir)
			asked := p.send("message-input", named(message("one")))
			key := asked.emits()[0].Key
			require.NoError(t, processors.CheckSession(key), "the group of the memories would dead-letter the step")
			p.send("think-request-response", named(response(the[enriched](t, asked), saying("hello"))))
			end := p.wait(endsAfter).emits()
			require.Len(t, end, 3)
			require.Equal(t, key, end[2].Key)
			snapshot := end[2].Value.(memoirSession)
			if snapshot.UserID != nil {
				require.Equal(t, key, *snapshot.UserID, "FlightDeck's updater writes the memory under the user ID of the snapshot")
			}
			require.NoError(t, processors.CheckSession(topics.UserScope(user)), "the costs of the user would not be counted")
			require.NoError(t, processors.CheckSession(topics.TenantScope(user)))
		})
	}
}

func TestInstanceWithoutMemoirKeepsTheIDsOfEndsNew(t *testing.T) {
	p := talked(t)
	before := p.state().LastTurn
	p.rules.Memoir = nil
	p.restart()
	p.respond(p.ask("two"), saying("hello again"))
	require.NotEqual(t, before, p.state().LastTurn)
}

func TestMemoirIsChecked(t *testing.T) {
	for _, m := range []Memoir{{After: -1}, {ContextBytes: 1}, {ContextBytes: 600 << 10}} {
		_, err := Graph(agent, Config{Memoir: &m})
		require.ErrorIs(t, err, ErrConfig)
	}
	_, err := Graph(agent, Config{Memoir: &Memoir{}})
	require.NoError(t, err)
	_, err = Graph(agent, Config{Memoir: &Memoir{ContextBytes: 400 << 10}, BothSpellings: true})
	require.ErrorIs(t, err, ErrConfig)
}

// A crash takes the row back to before the response, and the turn times out this time: the end has no answer, so it is not a
// repeat of the end that had one.
func TestEndsWithDifferentConversationsHaveDifferentIDs(t *testing.T) {
	p := newPlay(t, withMemoir)
	asked := p.ask("one")
	row := p.row
	p.respond(asked, saying("hello"))
	first := p.wait(endsAfter)
	p.row = row
	p.restart()
	p.wait(p.rules.ThinkTimeout)
	again := p.wait(endsAfter)
	require.Equal(t, "[]", string(the[memoirSession](t, again).Messages))
	require.NotContains(t, first.ids(), again.ids()[2])
}
