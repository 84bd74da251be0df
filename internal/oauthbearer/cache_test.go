package oauthbearer

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestTokenIsUsedForFourFifthsOfItsLifetime(t *testing.T) {
	c := cache{}.fetched("one", time.Hour, start)
	token, failure := c.lookup(start.Add(48*time.Minute - time.Second))
	require.NoError(t, failure)
	require.Equal(t, "one", token)
	token, failure = c.lookup(start.Add(48 * time.Minute))
	require.NoError(t, failure)
	require.Empty(t, token, "a new one is fetched")
}

func TestTokenWithoutAKnownLifetimeIsUsedForAMinute(t *testing.T) {
	c := cache{}.fetched("one", 0, start)
	token, _ := c.lookup(start.Add(time.Minute - 1))
	require.Equal(t, "one", token)
	token, _ = c.lookup(start.Add(time.Minute))
	require.Empty(t, token)
}

func TestTokenStaysInUseUntilItExpiresIfNoNewOneIsFetched(t *testing.T) {
	c := cache{}.fetched("one", time.Hour, start)
	failure := errors.New("down")
	at := start.Add(50 * time.Minute)
	c = c.failed(failure, at)
	token, err := c.lookup(at)
	require.NoError(t, err)
	require.Equal(t, "one", token)
	token, err = c.lookup(at.Add(shortestRetry))
	require.NoError(t, err)
	require.Empty(t, token, "fetch again")
	c = c.failed(failure, start.Add(time.Hour))
	_, err = c.lookup(start.Add(time.Hour))
	require.ErrorIs(t, err, failure, "the token has expired")
	require.False(t, c.valid(start.Add(time.Hour)))
}

func TestFetchesThatFailAreLimited(t *testing.T) {
	var c cache
	at, fetches := start, 0
	for ; at.Before(start.Add(time.Minute)); at = at.Add(10 * time.Millisecond) {
		if token, err := c.lookup(at); token == "" && err == nil {
			fetches++
			c = c.failed(errors.New("invalid_client"), at)
		}
	}
	require.Greater(t, fetches, 6)
	require.Less(t, fetches, 15)
	c = c.fetched("one", time.Hour, at)
	require.Zero(t, c.failures)
}
