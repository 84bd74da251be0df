package platform

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

func TestWaitGrowsToTheLongest(t *testing.T) {
	var got []time.Duration
	for n := range 8 {
		got = append(got, ReconnectWait(n)/time.Second)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}, got)
	require.Equal(t, longestWait, ReconnectWait(1<<40))
}

// instant ends every wait at once and records it.
type instant struct {
	clock.Clock
	waits *[]time.Duration
}

func (c instant) NewTicker(d time.Duration) clock.Ticker {
	*c.waits = append(*c.waits, d/time.Second)
	f := clock.NewFake(time.UnixMilli(0))
	t := f.NewTicker(d)
	f.Advance(d)
	return t
}

func TestLoopRepeatsUntilItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	core, logs := observer.New(zap.WarnLevel)
	var waits []time.Duration
	n := 0
	secret := errors.New("https://host/bot-s3cret")
	require.NoError(t, Reconnect(ctx, instant{waits: &waits}, zap.New(core), func(context.Context) (bool, error) {
		switch n++; n {
		case 1, 2:
			return false, secret
		case 3:
			return true, nil
		case 4:
			return false, &adapter.Failure{Reason: "status 429", RetryAfter: 90 * time.Second}
		default:
			cancel()
			return true, nil
		}
	}))
	require.Equal(t, []time.Duration{1, 2, 1, 90}, waits, "progress starts the waits again; the platform's wait counts")
	var reasons []string
	for _, e := range logs.All() {
		reasons = append(reasons, e.ContextMap()["reason"].(string))
	}
	require.Equal(t, []string{"connection ended", "connection ended", "connection ended", "status 429"}, reasons)
}

func TestLoopEndsDuringAWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Reconnect(ctx, clock.NewFake(time.UnixMilli(0)), nil, func(context.Context) (bool, error) { return false, nil })
	}()
	cancel()
	require.NoError(t, <-ended)
}
