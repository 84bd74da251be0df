package webchat

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = time.Minute

var noon = time.UnixMilli(1_790_000_000_120)

type inbox struct {
	mu   sync.Mutex
	got  []adapter.Inbound
	fail error
}

func (i *inbox) Receive(_ context.Context, in adapter.Inbound) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fail != nil {
		return i.fail
	}
	i.got = append(i.got, in)
	return nil
}

func (i *inbox) failing(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fail = err
}

// fixture is a server on loopback. Its callers name themselves in the header X-User.
type fixture struct {
	*Server
	t       testing.TB
	url     string
	clock   *clock.Fake
	revoked sync.Map // user -> true
}

func newFixture(t testing.TB, r adapter.Receiver, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: clock.NewFake(noon)}
	c := Config{Account: "main", Clock: f.clock, Authenticate: func(r *http.Request) (auth.Caller, error) {
		user := r.Header.Get("X-User")
		if user == "" {
			return auth.Caller{}, auth.ErrRejected
		}
		caller := auth.Caller{UserID: user, Subject: "key:" + user, Revoked: func() bool { _, ok := f.revoked.Load(user); return ok }}
		switch user {
		case "reader":
			caller.Rights = auth.Read
		case "writer":
			caller.Rights = auth.Read | auth.Write
		case "anonymous":
			caller.UserID = ""
		}
		return caller, nil
	}}
	for _, change := range change {
		change(&c)
	}
	s, err := New(c, r)
	require.NoError(t, err)
	server := httptest.NewServer(s)
	f.Server, f.url = s, server.URL
	t.Cleanup(server.Close)
	t.Cleanup(s.Close)
	return f
}

type browser struct {
	*ws.Conn
	t testing.TB
}

func (f *fixture) dial(user string, headers ...string) (*browser, int) {
	f.t.Helper()
	h := http.Header{"X-User": {user}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, response, err := ws.Dial(f.t.Context(), "ws"+strings.TrimPrefix(f.url, "http"), &ws.DialOptions{HTTPHeader: h})
	if err != nil {
		require.NotNil(f.t, response, err)
		return nil, response.StatusCode
	}
	conn.SetReadLimit(1 << 24)
	b := &browser{conn, f.t}
	f.t.Cleanup(func() { _ = b.CloseNow() })
	return b, response.StatusCode
}

// open connects a user and returns when the user can be answered.
func (f *fixture) open(user string) *browser {
	f.t.Helper()
	before := len(f.hub.of(user))
	b, status := f.dial(user)
	require.Equal(f.t, http.StatusSwitchingProtocols, status)
	require.Equal(f.t, response{Type: "connected", User: user}, b.next())
	require.Eventually(f.t, func() bool { return len(f.hub.of(user)) > before }, waitLimit, time.Millisecond)
	return b
}

func (b *browser) send(text string) {
	b.t.Helper()
	require.NoError(b.t, b.Write(b.t.Context(), ws.MessageText, []byte(text)))
}

func (b *browser) read() (response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	_, raw, err := b.Read(ctx)
	if err != nil {
		return response{}, err
	}
	var r response
	require.NoError(b.t, json.Unmarshal(raw, &r, json.RejectUnknownMembers(true)), string(raw))
	return r, nil
}

func (b *browser) next() response {
	b.t.Helper()
	r, err := b.read()
	require.NoError(b.t, err)
	return r
}

// ending is the status with which the server closes the connection.
func (b *browser) ending() ws.StatusCode {
	b.t.Helper()
	for {
		if _, err := b.read(); err != nil {
			return ws.CloseStatus(err)
		}
	}
}

func to(user, thread string) topics.Origin {
	return topics.Origin{Channel: Channel, Account: "main", Recipient: user, User: user, Thread: thread, MessageID: "c1"}
}

func chunk(to topics.Origin, text string) adapter.Chunk {
	return adapter.Chunk{To: to, Text: text, Format: "markdown", Key: "delivery/0", Count: 1}
}

func reasonOf(t *testing.T, err error) adapter.Failure {
	t.Helper()
	var f *adapter.Failure
	require.ErrorAs(t, err, &f)
	return *f
}

func TestMessageIsAnEventOfTheAuthenticatedUser(t *testing.T) {
	r := &inbox{}
	b := newFixture(t, r).open("ada")
	b.send(`{"type":"message","id":"c1","content":"Hello","thread":"t1","user":"eve","recipient":"eve"}`)
	require.Equal(t, response{Type: "accepted", ID: "c1"}, b.next())
	b.send(`{"type":"message","id":"c1","content":"Hello","thread":"t1"}`)
	require.Equal(t, response{Type: "accepted", ID: "c1"}, b.next())
	b.send(`{"type":"decision","id":"c2","gate_id":"g","approve":false}`)
	require.Equal(t, response{Type: "accepted", ID: "c2"}, b.next())
	origin := topics.Origin{Channel: "webchat", Account: "main", Recipient: "ada", Thread: "t1", MessageID: "c1", User: "ada", UserName: "ada"}
	require.Len(t, r.got, 3)
	require.Equal(t, adapter.Inbound{Event: r.got[0].Event, Origin: origin, Text: "Hello", Mentioned: true}, r.got[0])
	require.Equal(t, r.got[0], r.got[1], "a repeat has the same event")
	require.Equal(t, &adapter.Decision{GateID: "g"}, r.got[2].Decision)
	require.Empty(t, r.got[2].Text)
	require.NotEqual(t, r.got[0].Event, request{Type: "message", ID: "c1"}.inbound("main", "eve").Event, "an ID is of its user")
}

func TestAnswerReachesTheSocketsOfItsUserOnly(t *testing.T) {
	f := newFixture(t, &inbox{})
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
	f := newFixture(t, &inbox{})
	_, err := f.Send(t.Context(), chunk(to("ada", ""), "Hi"))
	require.Equal(t, adapter.Failure{Reason: ReasonNotConnected}, reasonOf(t, err))
	b := f.open("ada")
	_, err = f.Send(t.Context(), chunk(to("ada", ""), "Hi"))
	require.NoError(t, err)
	require.Equal(t, "Hi", b.next().Content)
	require.NoError(t, b.Close(ws.StatusNormalClosure, ""))
	require.Eventually(t, func() bool { return len(f.hub.of("ada")) == 0 }, waitLimit, time.Millisecond)
	_, err = f.Send(t.Context(), chunk(to("ada", ""), "Hi"))
	require.Equal(t, ReasonNotConnected, reasonOf(t, err).Reason)
	other := to("ada", "")
	other.Account = "second"
	_, err = f.Send(t.Context(), chunk(other, "Hi"))
	require.True(t, reasonOf(t, err).Final)
}

func TestCallersAreAuthenticatedAndNeedRightsAndAUser(t *testing.T) {
	f := newFixture(t, &inbox{})
	for user, want := range map[string]int{"": 401, "reader": 403, "anonymous": 403, strings.Repeat("x", 600): 403, "ada": 101} {
		_, status := f.dial(user)
		require.Equal(t, want, status, user)
	}
	_, status := f.dial("ada", "Origin", "https://evil.test")
	require.Equal(t, http.StatusForbidden, status)
	b := f.open("writer")
	b.send(`{"type":"decision","id":"c2","gate_id":"g","approve":true}`)
	require.Equal(t, codeForbidden, b.next().Code)
}

func TestUnusableFramesAreRefusedAndTheConnectionStays(t *testing.T) {
	r := &inbox{}
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
	require.Empty(t, r.got)
	b.send(`{"type":"ping"}`)
	require.Equal(t, "pong", b.next().Type)
}

func TestLargeAndBinaryFramesEndTheConnection(t *testing.T) {
	f := newFixture(t, &inbox{})
	b := f.open("ada")
	_ = b.Write(t.Context(), ws.MessageText, []byte(strings.Repeat("x", maxMessage+1)))
	require.Equal(t, ws.StatusMessageTooBig, b.ending())
	b = f.open("ada")
	require.NoError(t, b.Write(t.Context(), ws.MessageBinary, []byte("{}")))
	require.Equal(t, ws.StatusUnsupportedData, b.ending())
}

func TestMessagesAreLimitedPerMinute(t *testing.T) {
	r := &inbox{}
	f := newFixture(t, r, func(c *Config) { c.PerMinute = 2 })
	b := f.open("ada")
	var codes []string
	for i := range 3 {
		b.send(`{"type":"message","id":"c` + strconv.Itoa(i) + `","content":"x"}`)
		codes = append(codes, b.next().Code)
	}
	require.Equal(t, []string{"", "", codeRate}, codes)
	require.Len(t, r.got, 2)
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
	f := newFixture(t, &inbox{}, func(c *Config) { c.PerCaller = 1 })
	b := f.open("ada")
	_, status := f.dial("ada")
	require.Equal(t, http.StatusTooManyRequests, status)
	f.open("bob")
	require.NoError(t, b.Close(ws.StatusNormalClosure, ""))
	require.Eventually(t, func() bool { _, status := f.dial("ada"); return status == 101 }, waitLimit, time.Millisecond)
}

func TestIdleClientIsDisconnected(t *testing.T) {
	f := newFixture(t, &inbox{})
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
	}, waitLimit, 10*time.Millisecond)
	require.Equal(t, ws.StatusGoingAway, status)
}

func TestRevokedCredentialEndsItsSockets(t *testing.T) {
	f := newFixture(t, &inbox{})
	b := f.open("ada")
	require.NoError(t, f.clock.WaitTickers(t.Context(), 2))
	f.revoked.Store("ada", true)
	f.clock.Advance(10 * time.Second)
	require.Equal(t, StatusCredentialExpired, b.ending())
}

func TestSlowClientIsDisconnectedAndNotWaitedFor(t *testing.T) {
	f := newFixture(t, &inbox{}, func(c *Config) { c.QueueFrames, c.WriteTimeout = 1, waitLimit })
	f.open("ada") // reads nothing more
	fast := f.open("ada")
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			if _, err := fast.read(); err != nil {
				return
			}
		}
	})
	large := strings.Repeat("x", 1<<19)
	var err error
	require.Eventually(t, func() bool {
		_, err = f.Send(t.Context(), chunk(to("ada", ""), large))
		return len(f.hub.of("ada")) < 2 || err != nil
	}, waitLimit, time.Millisecond)
	require.NoError(t, err, "the fast one has every message")
	_ = fast.CloseNow()
	reading.Wait()
}

func TestMessageThatWasNotReceivedIsSentAgain(t *testing.T) {
	r := &inbox{fail: errors.New("broker at 10.0.0.1 is unavailable")}
	b := newFixture(t, r).open("ada")
	b.send(`{"type":"message","id":"c1","content":"Hello"}`)
	got := b.next()
	require.Equal(t, []string{"error", codeRetry, "c1"}, []string{got.Type, got.Code, got.ID})
	require.NotContains(t, got.Message, "broker")
	r.failing(nil)
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
	require.Equal(t, ReasonNotConnected, reasonOf(t, err).Reason)
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
	for _, socket := range f.hub.of("ada") {
		require.ErrorIs(t, f.pass(ctx, socket, adapter.Inbound{}), context.Canceled, "another socket of the user waits")
	}
	close(leave)
	require.Equal(t, "accepted", one.next().Type)
}

func TestConfigurationIsChecked(t *testing.T) {
	ok := func(*http.Request) (auth.Caller, error) { return auth.Caller{UserID: "u"}, nil }
	for name, c := range map[string]Config{
		"account": {Authenticate: ok}, "authenticate": {Account: "main"}, "origins": {Account: "main", Authenticate: ok, Origins: []string{"*"}},
		"limit": {Account: "main", Authenticate: ok, PerMinute: -1}, "time": {Account: "main", Authenticate: ok, Idle: -1},
	} {
		_, err := New(c, &inbox{})
		require.ErrorIs(t, err, ErrConfig, name)
	}
	_, err := New(Config{Account: "main", Authenticate: ok}, nil)
	require.ErrorIs(t, err, ErrConfig)
}
