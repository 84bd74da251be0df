package websocket

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// D-21: FlightDeck sends events to all sockets, and answers to all where nobody has subscribed.
func TestFramesReachOnlySubscribersOfTheirSession(t *testing.T) {
	s := newSite(t)
	a, alsoA, b, silent := s.open().subscribe("a"), s.open().subscribe("a"), s.open().subscribe("b"), s.open()
	s.take("message-output", "a", 1, `{"content":"for a"}`)
	s.take("message-output", "nobody", 2, `{"content":"for nobody"}`)
	for _, one := range []*browser{a, alsoA} {
		require.Contains(t, one.next().text, "for a")
		require.Contains(t, one.next().text, "for a")
		one.none("a")
		if one == a {
			require.Contains(t, alsoA.next().text, "for a")
			require.Contains(t, alsoA.next().text, "for a")
			require.Contains(t, alsoA.next().text, "nothing else")
			break
		}
	}
	b.none("b")
	silent.subscribe("c").none("c")
}

func TestNewSubscriptionTakesThePlaceOfTheOldOne(t *testing.T) {
	s := newSite(t)
	b := s.open().subscribe("a").subscribe("b")
	require.Zero(t, s.subscribers("a"))
	s.take("message-input", "a", 1, `"a"`)
	s.take("message-input", "b", 2, `"b"`)
	require.Contains(t, b.next().data, `"value":"b"`)
	b.send(`{"type":"subscribe","session_id":"b"}`)
	b.subscribe("c").none("c")
}

func TestWhatIsNoSubscriptionIsIgnored(t *testing.T) {
	s := newSite(t)
	b := s.open().subscribe("a")
	for _, frame := range []string{
		"", "{", `{"type":"subscribe"}`, `{"type":"subscribe","session_id":" "}`, `{"type":"x"}`,
	} {
		b.send(frame)
	}
	require.NoError(t, b.Write(t.Context(), ws.MessageBinary, []byte(`{"type":"subscribe","session_id":"b"}`)))
	b.none("a")
	require.Equal(t, 1, s.subscribers("a"))
}

func TestAnyPathIsTaken(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"", "/", "/ws", "/a/b?c=d"} {
		_, _, err := s.dial(path)
		require.NoError(t, err)
	}
	response, err := http.Get(s.http.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUpgradeRequired, response.StatusCode)
}

// D-07: in FlightDeck a socket that closed at the wrong moment ended the thread that serves all.
func TestClientThatGoesMeetsNobodyElse(t *testing.T) {
	s := newSite(t, WithQueue(4096, 1<<24))
	stays := s.open().subscribe("s")
	stop := make(chan struct{})
	var going sync.WaitGroup
	for range 8 {
		going.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				b, _, err := s.dial("/")
				if err != nil {
					continue
				}
				_ = b.Write(t.Context(), ws.MessageText, []byte(`{"type":"subscribe","session_id":"s"}`))
				_ = b.CloseNow()
			}
		})
	}
	for i := range 1000 {
		s.take("message-input", "s", int64(i), `"`+strings.Repeat("x", 1000)+`"`)
	}
	close(stop)
	going.Wait()
	for i := range 1000 {
		require.Contains(t, stays.next().data, `"offset":`+strconv.Itoa(i)+`,`)
	}
	require.Eventually(t, func() bool { return s.subscribers("s") == 1 }, patience, time.Millisecond)
}

// D-43: in FlightDeck a session whose last client goes may take one with it that comes.
func TestClientThatComesWhileTheLastOneGoesIsServed(t *testing.T) {
	s := newSite(t, WithReplay(Replay{Sessions: 1}))
	h := s.hub
	for round := range 2000 {
		goes, comes := newClient(s.rules, Caller{}), newClient(s.rules, Caller{})
		require.True(t, h.admit(goes))
		require.True(t, h.admit(comes))
		h.subscribe(goes, "s")
		var both sync.WaitGroup
		both.Go(func() { h.leave(goes) })
		both.Go(func() { h.subscribe(comes, "s") })
		both.Wait()
		s.take("message-input", "s", int64(round), `{}`)
		_, got := comes.queue.take()
		require.True(t, got, "round %d", round)
		h.leave(comes)
	}
}

func TestSlowClientIsDroppedWithAReason(t *testing.T) {
	s := newSite(t, WithQueue(8, 1<<20), WithKeepalive(time.Hour, time.Hour, time.Minute))
	slow, quick := s.open().subscribe("s"), s.open().subscribe("s")
	big := `"` + strings.Repeat("x", 256<<10) + `"`
	dropped := func() (some bool) {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		for c := range s.hub.clients {
			select {
			case <-c.done:
				some = true
			default:
			}
		}
		return some
	}
	for i := int64(0); !dropped(); i++ {
		s.take("message-input", "s", i, big)
		quick.next()
	}
	require.Equal(t, ws.CloseError{Code: ws.StatusTryAgainLater, Reason: reasonSlow}, slow.ending())
	require.Eventually(t, func() bool { return s.subscribers("s") == 1 }, patience, time.Millisecond)
	quick.none("s")
}

func TestClientThatReadsNothingIsCutOff(t *testing.T) {
	s := newSite(t, WithQueue(8, 1<<20), WithKeepalive(time.Hour, time.Hour, 50*time.Millisecond))
	s.open().subscribe("s")
	big := `"` + strings.Repeat("x", 256<<10) + `"`
	for i := int64(0); s.subscribers("s") > 0; i++ {
		require.Less(t, i, int64(100_000))
		s.take("message-input", "s", i, big)
	}
}

func TestClientThatAnswersNoPingIsCutOff(t *testing.T) {
	s := newSite(t, WithKeepalive(20*time.Millisecond, 50*time.Millisecond, time.Second))
	b := s.open().subscribe("s") // pings are answered by who reads, and nobody does
	require.Eventually(t, func() bool { return s.subscribers("s") == 0 }, patience, time.Millisecond)
	_, err := b.read()
	require.Error(t, err)

	// Who reads answers, and stays for longer than a missing answer is waited for.
	const answer = 3 * time.Second
	s = newSite(t, WithKeepalive(20*time.Millisecond, answer, time.Minute))
	reads := s.open().subscribe("r")
	for i := range 8 {
		pause := time.NewTimer(answer / 6)
		go func() {
			<-pause.C
			s.take("message-input", "r", int64(i), `{}`)
		}()
		reads.next()
	}
}

func TestLimitsAreKept(t *testing.T) {
	s := newSite(t, WithFrameLimit(64), WithClientLimit(2))
	long := s.open()
	long.send(`{"type":"subscribe","session_id":"` + strings.Repeat("s", 64) + `"}`)
	require.Equal(t, ws.StatusMessageTooBig, long.ending().Code)
	require.Eventually(t, func() bool {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		return len(s.hub.clients) == 0
	}, patience, time.Millisecond)
	s.open()
	s.open()
	_, response, err := s.dial("/")
	require.Error(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "5", response.Header.Get("Retry-After"))
}

func TestCallersSeeWhatIsTheirs(t *testing.T) {
	s := newSite(t, WithAuthenticate(func(r *http.Request) (Caller, error) {
		user := r.Header.Get("X-User")
		if user == "" {
			return Caller{}, errors.New("s3cret")
		}
		return Caller{MaySubscribe: func(session string) bool { return strings.HasPrefix(session, user) }}, nil
	}), WithQueue(4, 1<<20))
	_, response, err := s.dial("/")
	require.Error(t, err)
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	mira, _, err := s.dial("/", "X-User", "mira")
	require.NoError(t, err)
	mira.subscribe("mira-1").send(`{"type":"subscribe","session_id":"\"kim\""}`)
	require.Equal(t, `{"type":"refused","data":{"session_id":"\"kim\"","reason":"not yours to see"}}`, mira.next().text)
	mira.none("mira-1")
	mira.send(`{"type":"subscribe","session_id":"kim","last_event_id":"x"}`)
	require.Equal(t, "refused", mira.next().kind)
}

func TestOriginsAreLimitedWhereTheyAreNamed(t *testing.T) {
	open := newSite(t)
	_, _, err := open.dial("/", "Origin", "https://evil.example")
	require.NoError(t, err, "as FlightDeck")
	s := newSite(t, WithOrigins("harbor.example"))
	_, response, err := s.dial("/", "Origin", "https://evil.example")
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode)
	_, _, err = s.dial("/", "Origin", "https://harbor.example")
	require.NoError(t, err)
	own := newSite(t, WithOrigins())
	_, _, err = own.dial("/", "Origin", own.http.URL)
	require.NoError(t, err)
	_, _, err = own.dial("/", "Origin", "https://harbor.example")
	require.Error(t, err)
}

func TestStopClosesClientsWhenTheyHaveWhatWaits(t *testing.T) {
	s := newSite(t)
	b, idle := s.open().subscribe("s"), s.open()
	for i := range 20 {
		s.take("message-input", "s", int64(i), `{}`)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.hub.close()
	}()
	for range 20 {
		b.next()
	}
	away := ws.CloseError{Code: ws.StatusGoingAway, Reason: reasonStopping}
	require.Equal(t, away, b.ending())
	require.Equal(t, away, idle.ending())
	<-stopped
	_, response, err := s.dial("/")
	require.Error(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
}

func TestOpenServerIsSaidOnce(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	s := newSite(t, WithLogger(zap.New(core)))
	s.open().subscribe("s")
	require.Equal(t, 2, logs.Len())
	require.Equal(t, 1, logs.FilterMessageSnippet("whoever reaches it may see every session").Len())
	require.Equal(t, 1, logs.FilterMessageSnippet("from any page").Len())
}

func TestBadServersAreRefused(t *testing.T) {
	for name, opt := range map[string]Option{
		"WithClientLimit": WithClientLimit(0), "WithQueue": WithQueue(1, 0), "WithFrameLimit": WithFrameLimit(0),
		"WithKeepalive": WithKeepalive(1, 0, 1), "WithOrigins": WithOrigins("["), "WithClock": WithClock(nil),
		"WithLogger": WithLogger(nil), "Frames": WithReplay(Replay{Frames: -1}), "Window": WithReplay(Replay{Window: -1}),
	} {
		_, err := New("pilot", opt)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, name)
	}
	_, err := New(" ")
	require.ErrorIs(t, err, ErrConfig)
	s, err := New("pilot")
	require.NoError(t, err)
	require.ErrorIs(t, s.Run(t.Context(), nil), ErrConfig)
	require.ErrorContains(t, s.Run(t.Context(), []string{"127.0.0.1:1"}), "once")
}

func TestHalfOpenConnectionIsNoClient(t *testing.T) {
	s := newSite(t)
	conn, err := net.Dial("tcp", s.http.Listener.Addr().String())
	require.NoError(t, err)
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
	require.NoError(t, err)
	answer := make([]byte, 12)
	_, err = conn.Read(answer)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 400", string(answer))
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		return len(s.hub.clients) == 0
	}, patience, time.Millisecond)
}
