package channel

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// slow is an adapter that holds every chunk until it is released.
type slow struct {
	platform
	entered chan string // the recipient of a chunk
	release chan struct{}
	inside  atomic.Int64
	most    atomic.Int64
}

func (s *slow) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	if n := s.inside.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.inside.Add(-1)
	s.entered <- c.To.Recipient
	<-s.release
	return s.platform.Send(ctx, c)
}

func TestOneConversationSendsOneMessageAtATime(t *testing.T) {
	s := &slow{platform: platform{traits: four()}, entered: make(chan string, 10), release: make(chan struct{})}
	live := Fixed(&Settings{Accounts: []Account{{Channel: "slack", Name: "main"}}})
	tr, err := NewTransport("front", live, []AccountAdapter{{"main", s}}, TransportConfig{})
	require.NoError(t, err)
	var group errgroup.Group
	send := func(id string, o topics.Origin) {
		d := answer("aaaa bbbb")
		d.DeliveryID, d.Channel = id, topics.OriginRoute(topics.EncodeOrigin(o), nil)
		group.Go(func() error { return tr.Deliver(t.Context(), d) })
	}
	send("d-1", room)
	require.Equal(t, "C1", <-s.entered)
	send("d-2", room)
	other := room
	other.Recipient = "C2"
	send("d-3", other)
	require.Equal(t, "C2", <-s.entered, "other conversations do not wait")
	require.Eventually(t, func() bool {
		waiting, _ := tr.conversations.Waiting(room.Session(""))
		return waiting == 1
	}, eventually, tick)

	// A third message gives up when its lease ends.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := answer("x")
	d.DeliveryID = "d-4"
	_, err = tr.Exchange(ctx, sink.Attempt{Delivery: d})
	require.Equal(t, sink.Failure{Reason: ReasonBusy}, failure(t, err))

	close(s.release)
	require.NoError(t, group.Wait())
	require.EqualValues(t, 2, s.most.Load(), "one message of each conversation at a time")
	var ofRoom []string
	for _, k := range s.accepted {
		if k.To.SamePlace(room) {
			ofRoom = append(ofRoom, k.Key)
		}
	}
	require.Equal(t, []string{"d-1/0", "d-1/1", "d-2/0", "d-2/1"}, ofRoom)
	for _, o := range []topics.Origin{room, other} {
		_, busy := tr.conversations.Waiting(o.Session(""))
		require.False(t, busy, "ended conversations are forgotten")
	}
}
