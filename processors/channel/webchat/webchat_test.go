package webchat

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/internal/socket"
	"github.com/turntable-streams/turntable/topics"
)

func TestMessageIsAnEventOfTheAuthenticatedUser(t *testing.T) {
	r := &platformtest.Inbox{}
	b := newFixture(t, r).open("ada")
	b.send(`{"type":"message","id":"c1","content":"Hello","thread":"t1","user":"eve","recipient":"eve"}`)
	require.Equal(t, response{Type: "accepted", ID: "c1"}, b.next())
	b.send(`{"type":"message","id":"c1","content":"Hello","thread":"t1"}`)
	require.Equal(t, response{Type: "accepted", ID: "c1"}, b.next())
	b.send(`{"type":"decision","id":"c2","gate_id":"g","approve":false}`)
	require.Equal(t, response{Type: "accepted", ID: "c2"}, b.next())
	origin := topics.Origin{Channel: "webchat", Account: "main", Recipient: "ada", Thread: "t1", MessageID: "c1", User: "ada", UserName: "ada"}
	require.Len(t, r.Got, 3)
	require.Equal(t, adapter.Inbound{Event: r.Got[0].Event, Origin: origin, Text: "Hello", Mentioned: true}, r.Got[0])
	require.Equal(t, r.Got[0], r.Got[1], "a repeat has the same event")
	require.Equal(t, &adapter.Decision{GateID: "g"}, r.Got[2].Decision)
	require.Empty(t, r.Got[2].Text)
	require.NotEqual(t, r.Got[0].Event, request{Type: "message", ID: "c1"}.inbound("main", "eve").Event, "an ID is of its user")
}

func TestAnswerReachesTheSocketsOfItsUserOnly(t *testing.T) {
	f := newFixture(t, &platformtest.Inbox{})
	one, two, other := f.open("ada"), f.open("ada"), f.open("adam")
	c := chunk(to("ada", "t1"), "Hi \xff")
	c.SenderName = "Pilot"
	sent, err := f.Send(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "delivery/0", sent.ID)
	zero := 0
	want := response{
		Type: "message", Key: "delivery/0", Content: "Hi \uFFFD", Format: "markdown", Thread: "t1", InReplyTo: "c1", Name: "Pilot", Index: &zero, Count: 1,
	}
	require.Equal(t, want, one.next())
	require.Equal(t, want, two.next())
	other.send(`{"type":"ping"}`)
	require.Equal(t, "pong", other.next().Type, "nothing else was sent to another user")

	c.Ask = &adapter.Ask{GateID: "g", Tool: "pay", ExpiresMS: 7}
	_, err = f.Send(t.Context(), c)
	require.NoError(t, err)
	ask := one.next()
	require.Equal(t, []any{"ask", "g", "pay", int64(7)}, []any{ask.Type, ask.GateID, ask.Tool, ask.ExpiresMS})
}

func TestUserWithoutASocketIsRetriedAndReachedAfterReconnecting(t *testing.T) {
	f := newFixture(t, &platformtest.Inbox{})
	_, err := f.Send(t.Context(), chunk(to("ada", ""), "Hi"))
	require.Equal(t, adapter.Failure{Reason: topics.ReasonNotConnected}, platformtest.Failure(t, err))
	b := f.open("ada")
	_, err = f.Send(t.Context(), chunk(to("ada", ""), "Hi"))
	require.NoError(t, err)
	require.Equal(t, "Hi", b.next().Content)
	require.NoError(t, b.Close(ws.StatusNormalClosure, ""))
	require.Eventually(t, func() bool { return len(f.hub.of("ada")) == 0 }, platformtest.WaitFor, platformtest.Tick)
	_, err = f.Send(t.Context(), chunk(to("ada", ""), "Hi"))
	require.Equal(t, topics.ReasonNotConnected, platformtest.Failure(t, err).Reason)
	other := to("ada", "")
	other.Account = "second"
	_, err = f.Send(t.Context(), chunk(other, "Hi"))
	require.True(t, platformtest.Failure(t, err).Final)
}

func TestCallersAreAuthenticatedAndNeedRightsAndAUser(t *testing.T) {
	events := make(chan auth.AuditEvent, 100)
	r := &platformtest.Inbox{}
	f := newFixture(t, r, func(c *Config) { c.Audit = func(e auth.AuditEvent) { events <- e } })
	for user, want := range map[string]int{"": 401, "reader": 403, "anonymous": 403, strings.Repeat("x", 600): 403, "ada": 101} {
		_, status := f.dial(user)
		require.Equal(t, want, status, user)
	}
	require.Len(t, events, 4)
	_, status := f.dial("ada", "Origin", "https://evil.test")
	require.Equal(t, http.StatusForbidden, status)
	require.Len(t, events, 5)
	b := f.open("writer")
	b.send(`{"type":"message","id":"c1","content":"/approve 1a2b3c4d"}`)
	require.Equal(t, "accepted", b.next().Type)
	require.Equal(t, topics.ProofNone, r.All()[0].Origin.Proof, "a command must not decide either")
	b.send(`{"type":"decision","id":"c2","gate_id":"g","approve":true}`)
	require.Equal(t, codeForbidden, b.next().Code)
}

func TestUnusableFramesAreRefusedAndTheConnectionStays(t *testing.T) {
	r := &platformtest.Inbox{}
	f := newFixture(t, r, func(c *Config) { c.PerMinute = 100 })
	b := f.open("ada")
	long := strings.Repeat("x", maxID+1)
	for _, frame := range []string{
		"", "x", "[]", "null", `{"type":"message"}`, `{"type":"message","id":"","content":"x"}`, `{"type":"message","id":"a b","content":"x"}`,
		`{"type":"message","id":"` + long + `","content":"x"}`, `{"type":"message","id":"c","content":""}`, `{"type":"message","id":"c","content":7}`,
		`{"type":"message","id":"c","content":"x","thread":"` + long + `"}`, `{"type":"message","id":"c","id":"d","content":"x"}`,
		`{"type":"message","id":"c","content":"` + "\xff" + `"}`, `{"type":"connected","id":"c"}`, `{"type":"decision","id":"c","gate_id":"g"}`,
		`{"type":"decision","id":"c","approve":true}`, `{"type":"message","id":"c","content":"x"} {}`,
	} {
		// A WebSocket text message of invalid UTF-8 is closed by some libraries; this one passes it on.
		b.send(frame)
		got := b.next()
		require.Equal(t, []string{"error", codeInvalid}, []string{got.Type, got.Code}, frame)
	}
	require.Empty(t, r.Got)
	b.send(`{"type":"ping"}`)
	require.Equal(t, "pong", b.next().Type)
}

func TestLargeAndBinaryFramesEndTheConnection(t *testing.T) {
	f := newFixture(t, &platformtest.Inbox{})
	b := f.open("ada")
	_ = b.Write(t.Context(), ws.MessageText, []byte(strings.Repeat("x", maxMessage+1)))
	require.Equal(t, ws.StatusMessageTooBig, b.ending())
	b = f.open("ada")
	require.NoError(t, b.Write(t.Context(), ws.MessageBinary, []byte("{}")))
	require.Equal(t, ws.StatusUnsupportedData, b.ending())
}

func TestMessagesAreLimitedPerMinute(t *testing.T) {
	r := &platformtest.Inbox{}
	f := newFixture(t, r, func(c *Config) { c.PerMinute = 2 })
	b := f.open("ada")
	var codes []string
	for i := range 3 {
		b.send(`{"type":"message","id":"c` + strconv.Itoa(i) + `","content":"x"}`)
		codes = append(codes, b.next().Code)
	}
	require.Equal(t, []string{"", "", codeRate}, codes)
	require.Len(t, r.Got, 2)
	f.clock.Advance(30 * time.Second)
	b.send(`{"type":"message","id":"c2","content":"x"}`)
	require.Equal(t, "accepted", b.next().Type)
	for range 20 {
		_ = b.Write(t.Context(), ws.MessageText, []byte(`{"type":"ping"}`))
	}
	for range 8 {
		_ = b.Write(t.Context(), ws.MessageText, []byte(`{"type":"ping"}`))
	}
	require.Equal(t, ws.StatusPolicyViolation, b.ending())
}

func TestConnectionsOfACallerAreLimited(t *testing.T) {
	f := newFixture(t, &platformtest.Inbox{}, func(c *Config) { c.PerCaller = 1 })
	b := f.open("ada")
	_, status := f.dial("ada")
	require.Equal(t, http.StatusTooManyRequests, status)
	f.open("bob")
	require.NoError(t, b.Close(ws.StatusNormalClosure, ""))
	require.Eventually(t, func() bool { _, status := f.dial("ada"); return status == 101 }, platformtest.WaitFor, platformtest.Tick)
}

func TestIdleClientIsDisconnected(t *testing.T) {
	f := newFixture(t, &platformtest.Inbox{})
	b := f.open("ada")
	require.NoError(t, f.clock.WaitTickers(t.Context(), 2)) // idle, and the credential's
	b.send(`{"type":"ping"}`)
	require.Equal(t, "pong", b.next().Type)
	f.clock.Advance(5 * time.Minute)
	b.send(`{"type":"ping"}`)
	require.Equal(t, "pong", b.next().Type, "it was not idle")
	ended := make(chan ws.StatusCode, 1)
	go func() { ended <- b.ending() }()
	var status ws.StatusCode
	require.Eventually(t, func() bool {
		f.clock.Advance(5 * time.Minute)
		select {
		case status = <-ended:
			return true
		default:
			return false
		}
	}, platformtest.WaitFor, 10*time.Millisecond)
	require.Equal(t, ws.StatusGoingAway, status)
}

func TestRevokedCredentialEndsItsSockets(t *testing.T) {
	f := newFixture(t, &platformtest.Inbox{})
	b := f.open("ada")
	require.NoError(t, f.clock.WaitTickers(t.Context(), 2))
	f.revoked.Store("ada", true)
	f.clock.Advance(10 * time.Second)
	require.Equal(t, socket.StatusExpired, b.ending())
}

func TestSlowClientIsDisconnectedAndNotWaitedFor(t *testing.T) {
	f := newFixture(t, &platformtest.Inbox{}, func(c *Config) { c.QueueFrames, c.WriteTimeout = 1, platformtest.WaitFor })
	f.open("ada") // reads nothing more
	fast := f.open("ada")
	large := strings.Repeat("x", 1<<19)
	for n := 0; len(f.hub.of("ada")) == 2; n++ {
		require.Less(t, n, 10_000, "the slow one is not disconnected")
		_, err := f.Send(t.Context(), chunk(to("ada", ""), large))
		require.NoError(t, err)
		// Send may return when the frame is in the buffers of the slow one's connection. The next frame is for a fast one that has this one.
		_, err = fast.read()
		require.NoError(t, err, "the fast one has every message")
	}
}

func TestMessageThatWasNotReceivedIsSentAgain(t *testing.T) {
	r := &platformtest.Inbox{Err: errors.New("broker at 10.0.0.1 is unavailable")}
	b := newFixture(t, r).open("ada")
	b.send(`{"type":"message","id":"c1","content":"Hello"}`)
	got := b.next()
	require.Equal(t, []string{"error", codeRetry, "c1"}, []string{got.Type, got.Code, got.ID})
	require.NotContains(t, got.Message, "broker")
	r.Failing(nil)
	b.send(`{"type":"message","id":"c1","content":"Hello"}`)
	require.Equal(t, "accepted", b.next().Type)
}

func TestCloseDisconnectsClientsAndCancelsWhatIsBeingReceived(t *testing.T) {
	begun := make(chan struct{})
	f := newFixture(t, adapter.ReceiverFunc(func(ctx context.Context, _ adapter.Inbound) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}))
	b := f.open("ada")
	b.send(`{"type":"message","id":"c1","content":"Hello"}`)
	<-begun
	ended := make(chan ws.StatusCode, 1)
	go func() { ended <- b.ending() }()
	f.Close()
	require.Equal(t, ws.StatusGoingAway, <-ended)
	_, err := f.Send(t.Context(), chunk(to("ada", ""), "Hi"))
	require.Equal(t, topics.ReasonNotConnected, platformtest.Failure(t, err).Reason)
	late, _ := f.dial("ada")
	require.Equal(t, ws.StatusGoingAway, late.ending())
}

func TestEventsOfAUserKeepTheirOrder(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f := newFixture(t, adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error {
		once.Do(func() { close(entered) })
		<-leave
		return nil
	}))
	one := f.open("ada")
	f.open("ada")
	one.send(`{"type":"message","id":"c1","content":"first"}`)
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Len(t, f.hub.of("ada"), 2)
	require.ErrorIs(t, f.turns.Do(ctx, "ada", func() error { return nil }), context.Canceled, "another socket of the user waits")
	close(leave)
	require.Equal(t, "accepted", one.next().Type)
}

func TestConfigurationIsChecked(t *testing.T) {
	ok := func(*http.Request) (auth.Caller, error) { return auth.Caller{UserID: "u"}, nil }
	for name, c := range map[string]Config{
		"account": {Authenticate: ok}, "authenticate": {Account: "main"}, "origins": {Account: "main", Authenticate: ok, Origins: []string{"*"}},
		"limit": {Account: "main", Authenticate: ok, PerMinute: -1}, "time": {Account: "main", Authenticate: ok, Idle: -1},
	} {
		_, err := New(c, &platformtest.Inbox{})
		require.ErrorIs(t, err, ErrConfig, name)
	}
	_, err := New(Config{Account: "main", Authenticate: ok}, nil)
	require.ErrorIs(t, err, ErrConfig)
}
