package websocket

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// Unlike here, FlightDeck sends events to all clients, and answers to all clients if none has subscribed.
func TestFramesReachOnlySubscribersOfTheirSession(t *testing.T) {
	s := newFixture(t)
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

func TestNewSubscriptionReplacesTheOldOne(t *testing.T) {
	s := newFixture(t)
	b := s.open().subscribe("a").subscribe("b")
	require.Zero(t, s.subscribers("a"))
	s.take("message-input", "a", 1, `"a"`)
	s.take("message-input", "b", 2, `"b"`)
	require.Contains(t, b.next().data, `"value":"b"`)
	b.send(`{"type":"subscribe","session_id":"b"}`)
	b.subscribe("c").none("c")
}

func TestOtherFramesOfClientsAreIgnored(t *testing.T) {
	s := newFixture(t)
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

// In FlightDeck, a connection that closed at the wrong moment ended the thread that serves all clients.
func TestDisconnectingClientsDoNotAffectOthers(t *testing.T) {
	s := newFixture(t, func(c *Config) { c.QueueFrames, c.QueueBytes = 4096, 1<<24 })
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
	require.Eventually(t, func() bool { return s.subscribers("s") == 1 }, waitLimit, time.Millisecond)
}

// In FlightDeck, a client that subscribed while the session's last client left could receive nothing.
func TestClientThatSubscribesWhileTheLastOneLeavesIsServed(t *testing.T) {
	s := newFixture(t, func(c *Config) { c.Replay = Replay{Sessions: 1} })
	h := s.hub
	for round := range 2000 {
		goes, comes := newClient(s.config, auth.Caller{}), newClient(s.config, auth.Caller{})
		require.True(t, h.admit(goes))
		require.True(t, h.admit(comes))
		h.subscribe(goes, "s")
		var both sync.WaitGroup
		both.Go(func() { h.leave(goes) })
		both.Go(func() { h.subscribe(comes, "s") })
		both.Wait()
		s.take("message-input", "s", int64(round), `{}`)
		_, got := comes.Take()
		require.True(t, got, "round %d", round)
		h.leave(comes)
	}
}

func TestSlowClientIsDisconnectedWithAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(c *Config) {
			c.QueueFrames, c.QueueBytes, c.PingInterval, c.PongTimeout, c.WriteTimeout = 8, 1<<20, time.Hour, time.Hour, time.Minute
		})
		slow, quick := s.open().subscribe("s"), s.open().subscribe("s")
		big := `"` + strings.Repeat("x", 256<<10) + `"`
		dropped := func() (some bool) {
			s.hub.mu.Lock()
			defer s.hub.mu.Unlock()
			for c := range s.hub.clients {
				select {
				case <-c.Ending:
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
		require.Equal(t, ws.CloseError{Code: ws.StatusTryAgainLater, Reason: socket.ReasonSlow}, slow.ending())
		require.Eventually(t, func() bool { return s.subscribers("s") == 1 }, waitLimit, time.Millisecond)
		quick.none("s")
	})
}

func TestClientThatReadsNothingIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(c *Config) {
			c.QueueFrames, c.QueueBytes, c.PingInterval, c.PongTimeout, c.WriteTimeout = 8, 1<<20, time.Hour, time.Hour, 50*time.Millisecond
		})
		s.open().subscribe("s")
		big := `"` + strings.Repeat("x", 256<<10) + `"`
		for i := range int64(10) {
			s.take("message-input", "s", i, big)
		}
		require.Eventually(t, func() bool { return s.subscribers("s") == 0 }, waitLimit, time.Millisecond)
	})
}

func TestClientThatAnswersNoPingIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(c *Config) {
			c.PingInterval, c.PongTimeout, c.WriteTimeout = 20*time.Millisecond, 50*time.Millisecond, time.Second
		})
		b := s.open().subscribe("s") // it does not read, so it does not answer pings
		require.Eventually(t, func() bool { return s.subscribers("s") == 0 }, waitLimit, time.Millisecond)
		_, err := b.read()
		require.Error(t, err)

		// A client that reads answers pings, and stays connected for longer than the time to answer.
		const answer = 3 * time.Second
		s = newFixture(t, func(c *Config) {
			c.PingInterval, c.PongTimeout, c.WriteTimeout = 20*time.Millisecond, answer, time.Minute
		})
		reads := s.open().subscribe("r")
		for i := range 8 {
			pause := time.NewTimer(answer / 6)
			go func() {
				<-pause.C
				s.take("message-input", "r", int64(i), `{}`)
			}()
			reads.next()
		}
	})
}
