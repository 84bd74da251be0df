package websocket

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

func TestDeliverySucceedsWhenItWasWrittenToAClient(t *testing.T) {
	s := newFixture(t)
	d := topics.Delivery{
		DeliveryID: "d-1", SessionID: "s", Route: topics.Destination{Kind: topics.KindWebSocket, Service: "screen"},
		Body: topics.Raw(`{"session_id":"s","content":"N4","bearerToken":"s3cret","timestamp":"t"}`),
	}
	var f *sink.Failure
	require.ErrorAs(t, s.Deliver(t.Context(), d), &f)
	require.Equal(t, sink.Failure{Reason: "no client here has subscribed"}, *f)

	b, other := s.open().subscribe("s"), s.open().subscribe("t")
	deliver := func() got {
		t.Helper()
		delivered := make(chan error, 1)
		go func() { delivered <- s.Deliver(t.Context(), d) }()
		frame := b.next() // a write ends when it is read
		require.NoError(t, <-delivered)
		return frame
	}
	first := deliver()
	require.Contains(t, first.text, `"role":"assistant","content":"N4","timestamp":"t"},"session_id":"s"}`)
	require.Empty(t, first.id)
	require.Equal(t, first, deliver(), "a repeat has the same ID")
	other.none("t")

	d.Body = topics.Raw(`{`)
	require.ErrorAs(t, s.Deliver(t.Context(), d), &f)
	require.True(t, f.Final)
}

func TestDeliveryFailsIfNoClientReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(c *Config) {
			c.PingInterval, c.PongTimeout, c.WriteTimeout = time.Hour, time.Hour, 20*time.Millisecond
		})
		c := newClient(s.config, auth.Caller{}) // without a goroutine that writes its queue
		require.True(t, s.hub.admit(c))
		defer s.hub.leave(c)
		s.hub.subscribe(c, "s")
		d := topics.Delivery{DeliveryID: "d-1", SessionID: "s", Body: topics.Raw(`{}`)}
		var f *sink.Failure
		require.ErrorAs(t, s.Deliver(t.Context(), d), &f)
		require.Equal(t, "timeout", f.Reason)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Deliver(ctx, d), context.Canceled)
	})
}
