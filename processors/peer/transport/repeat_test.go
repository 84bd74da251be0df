package transport

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
)

func TestRepeatedTaskIsNotSentToAPeerThatIsNotIdempotent(t *testing.T) {
	for name, card := range map[string]http.HandlerFunc{
		"card does not say so": nil, "no card": answer(404, ""), "malformed card": answer(200, "<html>"),
	} {
		for _, change := range []func(*sink.Attempt, *peerwire.Attempt){repeat, repeated} {
			t.Run(name, func(t *testing.T) {
				p := newInstance(t)
				if card != nil {
					p.card = card
				}
				e := exchange(t, p.sender(), attempt(change))
				require.Equal(t, []any{peerwire.CodeOutcomeUnknown, true, true}, []any{e.Code, e.Final, e.Reached})
				require.Zero(t, p.count("POST"))
			})
		}
	}
}

func TestRepeatedTaskIsSentToAnIdempotentPeer(t *testing.T) {
	for _, change := range []func(*sink.Attempt, *peerwire.Attempt){repeat, repeated} {
		p := newInstance(t, idempotent)
		require.False(t, exchange(t, p.sender(), attempt(change)).failed)
		p.on(answer(401, ""))
		e := exchange(t, p.sender(), attempt(change))
		require.True(t, e.Reached, "the attempt before may have reached the peer")
		require.Equal(t, 2, p.count("POST"))
	}
}

func TestRepeatedTaskIsRetriedWhileTheCardCannotBeRead(t *testing.T) {
	for status, want := range map[int]peerwire.Code{500: peerwire.CodePeerRefused, 503: peerwire.CodePeerBusy} {
		p := newInstance(t, idempotent)
		good := p.card
		p.card = answer(status, "")
		tr := p.sender()
		e := exchange(t, tr, attempt(repeat))
		require.Equal(t, []any{want, false, false, true, status}, []any{e.Code, e.Final, e.Answered, e.Reached, e.Status})
		require.Zero(t, p.count("POST"))
		p.show(good)
		require.False(t, exchange(t, tr, attempt(repeat, number(2))).failed)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	e := exchange(t, sender(t, configured("http://"+l.Addr().String())), attempt(repeat))
	require.Equal(t, []any{peerwire.CodeUnreachable, false, true}, []any{e.Code, e.Final, e.Reached})

	p := newInstance(t)
	p.card = hang
	e = exchange(t, p.sender(), attempt(repeat, timeout(100*time.Millisecond)))
	require.Equal(t, []any{peerwire.CodeTimeout, false, true}, []any{e.Code, e.Final, e.Reached})
	require.Zero(t, p.count("POST"))
}

func TestCardIsKeptForAMinute(t *testing.T) {
	p, c := newInstance(t, idempotent), clock.NewFake(time.Now())
	tr := p.sender(func(config *Config) { config.Clock = c })
	send := func(n int64) { require.False(t, exchange(t, tr, attempt(number(n))).failed) }
	send(1)
	c.Advance(59 * time.Second)
	send(2)
	require.Equal(t, 1, p.count("GET"))
	c.Advance(time.Second)
	send(3)
	require.Equal(t, 2, p.count("GET"))
	for i := range maxCards + 1 {
		tr.cards.put(string(rune(i)), peerwire.Card{}, c.Now())
	}
	require.LessOrEqual(t, len(tr.cards.kept), maxCards)
}

func TestSameAttemptIsMadeOnce(t *testing.T) {
	p := newInstance(t)
	tr := p.sender()
	first := exchange(t, tr, attempt())
	require.Equal(t, first, exchange(t, tr, attempt()))
	require.Equal(t, first, exchange(t, tr, attempt(repeated)), "the answer is known")
	require.Equal(t, 1, p.count("POST"))
	require.False(t, exchange(t, tr, attempt(number(2))).failed)
	require.Equal(t, 2, p.count("POST"))

	p.on(answer(503, ""))
	busy := exchange(t, tr, attempt(number(3)))
	require.Equal(t, busy, exchange(t, tr, attempt(number(3))))
	require.Equal(t, 3, p.count("POST"))
}

func TestSameAttemptThatRunsIsWaitedFor(t *testing.T) {
	p, begun, release := newInstance(t), make(chan struct{}), make(chan struct{})
	p.delegate = func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-release
		success(w, r)
	}
	tr := p.sender()
	var calls sync.WaitGroup
	answers := make(chan exchanged, 3)
	calls.Go(func() { answers <- exchange(t, tr, attempt()) })
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := exchangeIn(t, ctx, tr, attempt())
	require.Equal(t, delivery.ReasonInterrupted, e.Reason)
	require.True(t, e.Reached)
	for range 2 {
		calls.Go(func() { answers <- exchange(t, tr, attempt()) })
	}
	close(release)
	calls.Wait()
	require.Equal(t, 1, p.count("POST"))
	first := <-answers
	require.False(t, first.failed)
	require.Equal(t, first, <-answers)
	require.Equal(t, first, <-answers)
}

func TestAttemptAfterAnInterruptedOneIsARepeatedOne(t *testing.T) {
	for name, sent := range map[string]int{"plain": 1, "idempotent": 2} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t, func(c *peerwire.Card) { c.Idempotent = name == "idempotent" })
			ctx, cancel := context.WithCancel(t.Context())
			p.delegate = func(w http.ResponseWriter, r *http.Request) {
				cancel()
				hang(w, r)
			}
			tr := p.sender()
			e := exchangeIn(t, ctx, tr, attempt())
			require.Equal(t, []any{delivery.ReasonInterrupted, false, true}, []any{e.Reason, e.Final, e.Reached})
			p.on(success)
			e = exchange(t, tr, attempt())
			require.Equal(t, name == "plain", e.Code == peerwire.CodeOutcomeUnknown)
			require.Equal(t, sent, p.count("POST"))
		})
	}
}

func TestAttemptAfterOneThatWasInterruptedBeforeItWasSentIsNotARepeatedOne(t *testing.T) {
	p := newInstance(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr := p.sender()
	e := exchangeIn(t, ctx, tr, attempt())
	require.Equal(t, []any{delivery.ReasonInterrupted, false}, []any{e.Reason, e.Reached})
	require.False(t, exchange(t, tr, attempt()).failed)
	require.Equal(t, 1, p.count("POST"))
}

func TestPanicLeavesNoAttemptThatIsWaitedFor(t *testing.T) {
	p, broken := newInstance(t), true
	current := configured(p.base)
	tr := sender(t, func() *peer.Settings {
		if broken {
			panic("s3cret")
		}
		return current()
	})
	require.Panics(t, func() { _, _ = tr.Exchange(t.Context(), attempt()) })
	broken = false
	require.Equal(t, peerwire.CodeOutcomeUnknown, exchange(t, tr, attempt()).Code, "it may have been sent")
}
