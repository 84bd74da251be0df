package auth_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

var noon = time.UnixMilli(1_790_000_000_120)

func await(c auth.Caller, done chan struct{}, now *clock.Fake) <-chan bool {
	ended := make(chan bool, 1)
	go func() { ended <- c.Await(done, now) }()
	return ended
}

func TestAwaitReturnsWhenTheCredentialEnds(t *testing.T) {
	now := clock.NewFake(noon)
	ended := await(auth.Caller{Expires: noon.Add(61 * time.Second)}, nil, now)
	require.NoError(t, now.WaitTickers(t.Context(), 1))
	now.Set(noon.Add(time.Hour)) // the clock was set, or the machine was suspended
	require.True(t, <-ended)

	now = clock.NewFake(noon)
	var revoked atomic.Bool
	ended = await(auth.Caller{Revoked: revoked.Load}, nil, now)
	require.NoError(t, now.WaitTickers(t.Context(), 1))
	revoked.Store(true)
	now.Advance(10 * time.Second)
	require.True(t, <-ended)
}

func TestAwaitReturnsWhenDoneIsClosed(t *testing.T) {
	done, now := make(chan struct{}), clock.NewFake(noon)
	ended := await(auth.Caller{}, done, now)
	require.NoError(t, now.WaitTickers(t.Context(), 1))
	close(done)
	require.False(t, <-ended)
	require.Zero(t, now.Tickers())
}

func TestCredentialWithoutExpiryThatCannotBeRevokedLasts(t *testing.T) {
	require.True(t, auth.Caller{}.Lasts())
	require.False(t, auth.Caller{Expires: noon}.Lasts())
	require.False(t, auth.Caller{Revoked: func() bool { return false }}.Lasts())
}
