package sink

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

func TestSinkOfPeersDrainsLonger(t *testing.T) {
	to := Func(func(context.Context, topics.Delivery) error { return nil })
	for want, c := range map[time.Duration]Config{
		10 * time.Second: {}, 25 * time.Second: {Peers: true}, time.Minute: {Config: worker.Config{Grace: time.Minute}, Peers: true},
	} {
		c.Transports = map[string]Transport{topics.KindPeer: to}
		s, err := New("harbor", struct{ processors.Publisher }{}, c)
		require.NoError(t, err)
		require.Equal(t, want, s.config.Grace)
	}
}
