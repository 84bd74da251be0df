package websocket

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
)

const subscribeToAll = `{"type":"subscribe","session_id":"*"}`

func every(auth.Caller) bool { return true }

// callers authenticates by the header Caller.
func callers(all map[string]auth.Caller) func(*Config) {
	return func(c *Config) {
		c.Authenticate = func(r *http.Request) (auth.Caller, error) { return all[r.Header.Get("Caller")], nil }
	}
}

func (s *fixture) as(name string) *browser {
	s.t.Helper()
	b, _, err := s.dial("/ws", "Caller", name)
	require.NoError(s.t, err)
	return b
}

// watch subscribes to all sessions and returns when the server has handled that.
func (b *browser) watch() *browser {
	b.t.Helper()
	before := b.from.operators()
	b.send(subscribeToAll)
	require.Eventually(b.t, func() bool { return b.from.operators() > before }, waitLimit, time.Millisecond)
	return b
}

func (s *fixture) operators() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.hub.operators)
}

func (s *fixture) observed() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.observed.Len()
}

func TestOperatorSeesAllSessions(t *testing.T) {
	s := newFixture(t, callers(map[string]auth.Caller{"op": {Subject: "op"}, "mira": {Subject: "mira"}}), func(c *Config) { c.Operators = every })
	operator, mira := s.as("op").watch(), s.as("mira").subscribe("mira:1")
	s.take("message-input", "mira:1", 1, `"hers"`)
	s.take("message-output", "zoe:1", 1, `{"content":"x","reply_to":{"bearerToken":"s3cret"}}`)
	mira.require(`"hers"`)
	mira.none("mira:1")
	got := operator.require(`"hers"`, `pipeline_event`, `chat_response`, `"nothing else was sent"`)
	require.Contains(t, got[0].text, `"session_id":"mira:1"`)
	require.Contains(t, got[1].text, `"session_id":"zoe:1"`)
	require.NotContains(t, got[1].text, "s3cret")

	// The order by cause holds for sessions without clients, and goes on when a client subscribes.
	s.take("message-input", "ada:1", 1, `"tool message"`, withID(turnOne+"/1/message/0"))
	ada := s.as("mira").subscribe("ada:1")
	s.take("tool-use-all-complete", "ada:1", 1, `{"results":[]}`, withID(turnOne+"/1/all-complete/0"))
	operator.require("all-complete", `"tool message"`)
	ada.require("all-complete", `"tool message"`)

	// A subscription to one session replaces that to all.
	operator.subscribe("mira:1")
	s.take("message-input", "zoe:1", 2, `"zoe's"`)
	operator.none("mira:1")
	require.Zero(t, s.observed())
}

func TestOnlyOperatorsSeeAllSessions(t *testing.T) {
	of := func(patterns ...string) func(string) bool {
		sessions, err := auth.ParseSessions(patterns...)
		require.NoError(t, err)
		return sessions.For("*")
	}
	s := newFixture(t, callers(map[string]auth.Caller{
		"op":        {Subject: "op", MayUse: of("a-*", "*"), Rights: auth.Read | auth.Control},
		"no right":  {Subject: "op", MayUse: of("*"), Rights: auth.Read | auth.Write | auth.Answer},
		"some":      {Subject: "op", MayUse: of("a-*"), Rights: auth.AllRights},
		"the user*": {Subject: "op", MayUse: of("{user}"), Rights: auth.AllRights},
		"denied":    {Subject: "denied", MayUse: of("*"), Rights: auth.AllRights},
	}), func(c *Config) { c.Operators = func(c auth.Caller) bool { return c.Subject == "op" } })
	for _, name := range []string{"no right", "some", "the user*", "denied"} {
		b := s.as(name)
		b.send(subscribeToAll)
		require.Equal(t, `{"type":"refused","data":{"session_id":"*","reason":"not yours to see"}}`, b.next().text, name)
	}
	require.Zero(t, s.operators())
	s.as("op").watch()

	for name, change := range map[string]func(*Config){
		"without Operators":        callers(map[string]auth.Caller{"": {Subject: "op"}}),
		"without authentication":   func(*Config) {},
		"everyone sees everything": func(c *Config) { c.EverySessionToEveryone = true },
	} {
		b := newFixture(t, change).open()
		b.send(subscribeToAll)
		require.Contains(t, b.next().text, `{"type":"refused","data":{"session_id":"*"`, name)
	}
}

// Records of a session are written before the server reads the first of them: those that an operator missed are not older.
func TestOperatorResumesASessionFromItsFirstFrame(t *testing.T) {
	s := newFixture(t, callers(nil), func(c *Config) { c.Operators = every })
	b := s.open().watch()
	s.take("message-input", "s", 1, `"one"`, later(-20*time.Millisecond))
	last := b.next().id
	require.NoError(t, b.CloseNow())
	s.setFollower(&fakeFollower{
		records: []processors.Inbound{
			record("message-input", "s", 1, `"one"`, later(-20*time.Millisecond)),
			record("enriched-message-input", "s", 1, `"two"`, later(-19*time.Millisecond)),
		},
		next: map[string]int64{"pilot-message-input": 2, "pilot-enriched-message-input": 2},
	})
	s.open().resume("s", last).require(`"two"`, `"complete":true,"replayed":1`)
}

func TestOperatorDoesNotResume(t *testing.T) {
	s := newFixture(t, callers(nil), func(c *Config) { c.Operators = every })
	b := s.open().watch()
	s.take("message-input", "s", 1, `"one"`)
	last := b.next().id
	b.send(`{"type":"subscribe","session_id":"*","last_event_id":"` + last + `"}`)
	require.Equal(t, `{"type":"resumed","data":{"session_id":"*","complete":false,"replayed":0,"reason":"`+reasonOperator+`"}}`, b.next().text)
	s.take("message-input", "s", 2, `"two"`)
	b.require(`"two"`)

	// The event_id is that of the session.
	s.setFollower(&fakeFollower{})
	b.resume("s", last).require(`"complete":true`)
}

func TestSlowOperatorDelaysNoOne(t *testing.T) {
	s := newFixture(t, callers(nil), func(c *Config) { c.Operators, c.QueueFrames, c.QueueBytes = every, 8, 1<<10 })
	slow, other := newClient(s.config, auth.Caller{}), s.open().subscribe("s")
	require.True(t, s.hub.admit(slow))
	defer s.hub.leave(slow)
	s.hub.watch(slow)
	for i := range 100 {
		s.take("message-input", "s"+strings.Repeat("x", i%2), int64(i), strconv.Itoa(i))
		if i%2 == 0 {
			other.require(`"value":` + strconv.Itoa(i))
		}
	}
	select {
	case <-slow.Ending:
	default:
		require.FailNow(t, "the slow operator was not disconnected")
	}
	require.Equal(t, ws.StatusTryAgainLater, slow.Code)
	for range 8 {
		slow.Take()
	}
	_, more := slow.Take()
	require.False(t, more)
}

func TestOperatorIsDisconnectedWhenItsCredentialExpires(t *testing.T) {
	s := newFixture(t, callers(map[string]auth.Caller{"": {Expires: noon.Add(time.Minute)}}), func(c *Config) { c.Operators = every })
	b := s.open().watch()
	require.NoError(t, s.clock.WaitTickers(t.Context(), 1))
	s.clock.Advance(time.Minute)
	require.Equal(t, StatusCredentialExpired, b.ending().Code)
	require.Eventually(t, func() bool { return s.operators() == 0 }, waitLimit, time.Millisecond)
}

func TestSessionsOfOperatorsAreBounded(t *testing.T) {
	s := newFixture(t, callers(nil), func(c *Config) { c.Operators, c.QueueFrames, c.QueueBytes = every, 10_000, 64<<20 })
	b := s.open().watch()
	for i := range maxObserved + 10 {
		s.take("message-input", "s"+strconv.Itoa(i), 1, `"x"`, withID(turnOne+"/1/message/0"))
	}
	require.Equal(t, maxObserved, s.observed())
	for i := range 10 {
		b.require(`"sessionId":"s` + strconv.Itoa(i) + `"`)
	}
	s.take("message-input", strings.Repeat("x", 4096), 1, `"x"`)
	require.Equal(t, maxObserved, s.observed(), "a key that is no session is not shown")
	require.NoError(t, b.CloseNow())
	require.Eventually(t, func() bool { return s.observed() == 0 }, waitLimit, time.Millisecond)
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	require.Zero(t, s.hub.held)
	require.Empty(t, s.hub.holding)
}

// FlightDeck's dashboard subscribes to one session, shows the events of all and every answer that no one else receives.
func TestEveryoneSeesEverySession(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	s := newFixture(t, func(c *Config) { c.EverySessionToEveryone, c.Logger = true, zap.New(core) })
	require.Equal(t, 1, logs.FilterMessageSnippet("every WebSocket client sees every session").Len())
	a, b, none := s.open().subscribe("a"), s.open().subscribe("b"), s.open()
	require.Eventually(t, func() bool {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		return len(s.hub.clients) == 3
	}, waitLimit, time.Millisecond)
	s.take("message-output", "a", 1, `{"content":"for a"}`)
	s.take("message-output", "c", 2, `{"content":"for all"}`)
	s.take("message-input", "b", 1, `"last"`)
	a.require(`pipeline_event`, `chat_response`, `pipeline_event`, `chat_response`, `"last"`)
	b.require(`pipeline_event`, `pipeline_event`, `chat_response`, `"last"`)
	none.require(`"for a"`, `pipeline_event`, `chat_response`, `"last"`)
}

func TestFieldsThatShowAllSessionsNeedOrExcludeAuthenticate(t *testing.T) {
	_, err := New("pilot", Config{Operators: every})
	require.ErrorContains(t, err, "Operators requires Authenticate")
	c := Config{EverySessionToEveryone: true}
	callers(nil)(&c)
	_, err = New("pilot", c)
	require.ErrorContains(t, err, "EverySessionToEveryone excludes Authenticate")
}
