package sink

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

func TestSinkOfPeersDrainsLonger(t *testing.T) {
	to := Func(func(context.Context, topics.Delivery) error { return nil })
	for want, opts := range map[time.Duration][]Option{
		10 * time.Second: nil, 25 * time.Second: {ForPeers()}, time.Minute: {WithDrain(time.Minute), ForPeers()},
	} {
		s, err := New("harbor", struct{ processors.Publisher }{}, append(opts, WithTransport(topics.KindPeer, to))...)
		require.NoError(t, err)
		require.Equal(t, want, s.rules.drain)
	}
}
