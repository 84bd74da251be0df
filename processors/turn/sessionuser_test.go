package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// by returns a record of the user in place of mira's; an empty name leaves the user out.
func by(user, record string) string {
	if user == "" {
		return strings.Replace(record, `"user_id":"mira",`, "", 1)
	}
	return strings.Replace(record, `"user_id":"mira"`, `"user_id":`+string(appendText(nil, &user)), 1)
}

// says plays a turn: the user of the message, and the user that the model's worker reports.
func (p *play) says(user, text, worker string) effects {
	p.tb.Helper()
	asked := the[enriched](p.tb, p.send("message-input", by(user, message(text))))
	es := p.send("think-request-response", by(worker, response(asked, `"think_cost":0.25,`+saying("answer to "+text))))
	require.Nil(p.tb, the[answered](p.tb, es).Error)
	return es
}

// end ends the session and returns its snapshot and the key of it.
func (p *play) end() (key string, snapshot memoirSession) {
	p.tb.Helper()
	emits := p.wait(endsAfter).emits()
	require.Len(p.tb, emits, 3)
	return emits[2].Key, emits[2].Value.(memoirSession)
}

func TestConversationOfSeveralUsersIsInTheMemoryOfNone(t *testing.T) {
	for name, users := range map[string][]string{
		"two": {"mira", "otto"}, "two and the first again": {"mira", "otto", "mira"},
		"a user and the placeholder": {"mira", topics.PlaceholderUser},
		"the placeholder and a user": {topics.PlaceholderUser, "mira"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withMemoir)
			for _, user := range users {
				p.says(user, "secret of "+user, user)
			}
			key, snapshot := p.end()
			require.Equal(t, "session/s1", key)
			require.Nil(t, snapshot.UserID, "FlightDeck's updater writes the memory under this ID if there is one")
			require.Nil(t, snapshot.ThinkResponse.UserID)
			require.Contains(t, string(snapshot.Messages), "secret of mira")

			p.says("otto", "alone", "otto")
			key, snapshot = p.end()
			require.Equal(t, "otto", key, "the next conversation has one user")
			require.Equal(t, "otto", *snapshot.UserID)
			require.NotContains(t, string(snapshot.Messages), "mira")
		})
	}
}

func TestMemoryAndCostsBelongToTheUserOfTheMessage(t *testing.T) {
	for name, c := range map[string]struct{ message, worker, want string }{
		"the worker names another":           {"mira", "eve", "mira"},
		"the worker names none":              {"mira", "", "mira"},
		"only the worker names one":          {"", "eve", "eve"},
		"the worker names the message's":     {"mira", "mira", "mira"},
		"the worker names the placeholder":   {"mira", topics.PlaceholderUser, "mira"},
		"the worker names one that is blank": {"mira", " ", "mira"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withMemoir, withCosts)
			es := p.says(c.message, "hi", c.worker)
			require.Equal(t, c.want, *the[modelCharged](t, es).UserID)
			key, snapshot := p.end()
			require.Equal(t, c.want, key)
			require.Equal(t, c.want, *snapshot.UserID)
			require.Equal(t, c.want, *snapshot.ThinkResponse.UserID)
		})
	}
}

func TestConversationWithoutAnyUserIsInTheMemoryOfTheSession(t *testing.T) {
	p := newPlay(t, withMemoir, withCosts)
	require.Nil(t, the[modelCharged](t, p.says("", "hi", "")).UserID)
	key, snapshot := p.end()
	require.Equal(t, "s1", key)
	require.Nil(t, snapshot.UserID)
}

// The step for the model names the user before, as in FlightDeck, so its budget was checked.
func TestMessageWithoutAUserBelongsToTheUserBefore(t *testing.T) {
	p := newPlay(t, withMemoir, withCosts)
	p.says("mira", "one", "mira")
	require.Equal(t, "mira", *the[modelCharged](t, p.says("", "two", "eve")).UserID)
	key, snapshot := p.end()
	require.Equal(t, "mira", key)
	require.Contains(t, string(snapshot.Messages), "two")
}

func TestTurnWithoutAnAnswerDoesNotChangeTheMemory(t *testing.T) {
	p := newPlay(t, withMemoir)
	p.says("mira", "one", "mira")
	asked := the[enriched](t, p.send("message-input", by("otto", message("two"))))
	p.send("think-request-response", by("otto", response(asked, calling("t1"))))
	require.Equal(t, topics.CodeCancelled, the[answered](t, p.send("session-control", `{"action":"cancel"}`)).Error.Code)
	key, snapshot := p.end()
	require.Equal(t, "mira", key)
	require.Equal(t, "mira", *snapshot.UserID)
	require.Equal(t, "mira", *snapshot.ThinkResponse.UserID)
	require.NotContains(t, string(snapshot.Messages), "two")
}

func TestAnswerThatDoesNotFitDoesNotChangeTheMemory(t *testing.T) {
	p := newPlay(t, withMemoir, func(r *rules) { r.RowLimit = 128 << 10 })
	p.says("mira", "one", "mira")
	asked := the[enriched](t, p.send("message-input", by("otto", message("two"))))
	es := p.send("think-request-response", by("otto", response(asked, saying(strings.Repeat("x", 200<<10)))))
	require.Equal(t, topics.CodeTooLarge, the[answered](t, es).Error.Code)
	key, snapshot := p.end()
	require.Equal(t, "mira", key)
	require.NotContains(t, string(snapshot.Messages), "two")
}

// The open turn continues with the conversation that it began with.
func TestTombstoneDuringATurnKeepsTheUsersOfItsConversation(t *testing.T) {
	for name, responded := range map[string]bool{"before a response": false, "after one": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withMemoir)
			p.says("mira", "secret of mira", "mira")
			asked := the[enriched](t, p.send("message-input", by("otto", message("two"))))
			if responded {
				p.send("think-request-response", by("otto", response(asked, calling("t1"))))
			}
			p.tombstone("think-request-response")
			if responded {
				asked = the[enriched](t, p.result("t1", "x"))
			}
			answer := by("otto", response(asked, saying("done")))
			p.send("think-request-response", strings.ReplaceAll(answer, `"user_id":"mira",`, "")) // the echo names no one
			key, snapshot := p.end()
			require.Contains(t, string(snapshot.Messages), "secret of mira")
			require.Equal(t, "session/s1", key)
		})
	}
}

func TestTombstoneBetweenTurnsBeginsAConversationOfItsOwnUser(t *testing.T) {
	p := newPlay(t, withMemoir)
	p.says("mira", "one", "mira")
	p.tombstone("think-request-response")
	p.says("otto", "two", "otto")
	key, _ := p.end()
	require.Equal(t, "otto", key)
}

// The open turn would have continued the conversation that the tombstone cleared. It has no answer, so nothing is left of it.
func TestConversationAfterATombstoneAndAFailedTurnBelongsToItsOwnUser(t *testing.T) {
	for name, end := range map[string]func(*play){
		"timeout": func(p *play) { require.NotNil(p.tb, the[answered](p.tb, p.wait(p.rules.ThinkTimeout)).Error) },
		"cancel":  func(p *play) { p.send("session-control", `{"action":"cancel"}`) },
		"defect": func(p *play) {
			p.keep(abandon(p.state(), p.key, internal, p.now, p.rules))
			p.restart()
		},
	} {
		for _, responded := range []bool{false, true} {
			if responded && name == "timeout" {
				continue // the model is asked again when its calls time out
			}
			t.Run(fmt.Sprint(name, ", responded: ", responded), func(t *testing.T) {
				p := newPlay(t, withMemoir)
				p.says("mira", "secret of mira", "mira")
				asked := the[enriched](t, p.send("message-input", by("otto", message("two"))))
				if responded {
					p.send("think-request-response", by("otto", response(asked, calling("t1"))))
				}
				p.tombstone("think-request-response")
				end(p)
				require.Nil(t, p.state().Turn)
				require.Empty(t, p.state().MemoryKey)
				p.says("otto", "three", "otto")
				key, snapshot := p.end()
				require.Equal(t, "otto", key)
				require.Equal(t, "otto", *snapshot.UserID)
				require.NotContains(t, string(snapshot.Messages), "mira")
			})
		}
	}
}

// Imported rows and those of older builds do not say whose conversation they have.
func TestRowThatDoesNotNameItsUsersIsNotGivenToTheNextUser(t *testing.T) {
	older := func(change func(*turnrow.State)) *play {
		p := newPlay(t)
		p.says("mira", "secret of mira", "mira")
		p.rewrite(change)
		p.rules = newPlay(t, withMemoir).rules
		p.restart()
		return p
	}
	t.Run("another user", func(t *testing.T) {
		p := older(func(s *turnrow.State) {
			s.History = []byte(strings.ReplaceAll(string(s.History), `"user_id":"mira",`, ""))
		})
		p.says("otto", "two", "otto")
		key, snapshot := p.end()
		require.Contains(t, string(snapshot.Messages), "secret of mira")
		require.Equal(t, "session/s1", key)
	})
	t.Run("the last response had another user", func(t *testing.T) {
		p := older(func(s *turnrow.State) { s.UserId = new("otto") })
		p.says("otto", "two", "otto")
		key, _ := p.end()
		require.Equal(t, "session/s1", key, "the messages name mira")
	})
	t.Run("the same user", func(t *testing.T) {
		p := older(func(*turnrow.State) {})
		p.says("mira", "two", "mira")
		key, _ := p.end()
		require.Equal(t, "mira", key)
	})
}

// A worker that knows one user only may write it into the messages too.
func TestRewrittenEchoDoesNotChangeWhoPays(t *testing.T) {
	p := newPlay(t, withMemoir, withCosts)
	answer := response(p.ask("one"), `"think_cost":0.25,`+saying("hello"))
	es := p.send("think-request-response", strings.ReplaceAll(answer, `"user_id":"mira"`, `"user_id":"eve"`))
	require.Equal(t, "mira", *the[modelCharged](t, es).UserID)
	key, snapshot := p.end()
	require.Equal(t, "session/s1", key, "it cannot be told from a conversation of two users")
	require.Nil(t, snapshot.UserID)
}

// A response that no open step waits for was paid by the user of the message that it answers.
func TestLateResponseIsChargedToTheUserOfItsMessage(t *testing.T) {
	for name, worker := range map[string]string{"of the worker": "eve", "of the message": "mira", "none": ""} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withCosts)
			asked := p.ask("one")
			p.wait(p.rules.ThinkTimeout)
			p.send("message-input", by("otto", message("two")))
			late := p.send("think-request-response", by(worker, response(asked, `"think_cost":0.25,`+saying("late"))))
			require.NotEmpty(t, late.letters())
			require.Equal(t, "mira", *the[modelCharged](t, late).UserID)
		})
	}
}

// After a crash, the answer to a waiting message can be read while another user's turn is open.
func TestResponseToAWaitingMessageIsChargedToItsUser(t *testing.T) {
	p := newPlay(t, withCosts)
	p.ask("one")
	row := p.row
	p.send("message-input", by("otto", message("two")))
	waits := p.past[len(p.past)-1]
	es := p.send("session-control", `{"action":"cancel"}`)
	the[enriched](t, es)
	id := es.ids()[len(es.ids())-1]
	p.row = row
	p.restart()
	p.repeat(waits)
	es = p.send("think-request-response", `{"user_id":"eve","think_cost":0.25,`+saying("early")+`}`, header(topics.HeaderID, id+"/0"))
	require.Len(t, p.state().Early, 1)
	require.Equal(t, "otto", *the[modelCharged](t, es).UserID)
}

func TestFailureIsChargedToTheUserOfItsMessage(t *testing.T) {
	p := newPlay(t, withCosts)
	asked := p.ask("one")
	p.wait(p.rules.ThinkTimeout)
	p.send("message-input", by("otto", message("two")))
	late := p.send("think-dlq", `{"latest_input":`+string(asked.LatestInput)+`}`, header(topics.HeaderCost, "0.5"))
	require.NotEmpty(t, late.letters())
	require.Equal(t, "mira", *the[modelCharged](t, late).UserID)
}

// The answer of a step that timed out is read while another user's turn is open. Its message has no user, so the session's last
// user, whom the worker repeats, had its budget checked.
func TestLateResponseIsNotChargedToTheUserOfTheOpenTurn(t *testing.T) {
	for name, c := range map[string]struct {
		worker string
		named  bool
	}{
		"named by echo":               {"mira", false},
		"named by ID":                 {"mira", true},
		"named by echo, without user": {"", false},
		"named by ID, without user":   {"", true},
		"named by ID, another user":   {"eve", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withCosts)
			p.says("mira", "zero", "mira")
			es := p.send("message-input", by("", message("one")))
			asked, id := the[enriched](t, es), es.ids()[0]
			require.Equal(t, "mira", *asked.UserID)
			p.wait(p.rules.ThinkTimeout)
			p.send("message-input", by("otto", message("two")))
			var opts []recordOption
			if c.named {
				opts = append(opts, header(topics.HeaderID, id+"/0"))
			}
			value := `"last_input_message":` + string(asked.LatestInput) + `,"think_cost":0.25,` + saying("late") + `}`
			if c.worker != "" {
				value = `"user_id":"` + c.worker + `",` + value
			}
			late := p.send("think-request-response", "{"+value, opts...)
			require.Len(t, late.letters(), 1)
			want := c.worker
			if want == "" {
				want = "mira"
			}
			require.Equal(t, want, *the[modelCharged](t, late).UserID)
		})
	}
}
