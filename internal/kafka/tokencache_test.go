package kafka

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var tokenStart = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestTokenIsUsedForFourFifthsOfItsLifetime(t *testing.T) {
	c := tokenCache{}.fetched("one", time.Hour, tokenStart)
	token, failure := c.lookup(tokenStart.Add(48*time.Minute - time.Second))
	require.NoError(t, failure)
	require.Equal(t, "one", token)
	token, failure = c.lookup(tokenStart.Add(48 * time.Minute))
	require.NoError(t, failure)
	require.Empty(t, token, "a new one is fetched")
}

func TestTokenWithoutAKnownLifetimeIsUsedForAMinute(t *testing.T) {
	c := tokenCache{}.fetched("one", 0, tokenStart)
	token, _ := c.lookup(tokenStart.Add(time.Minute - 1))
	require.Equal(t, "one", token)
	token, _ = c.lookup(tokenStart.Add(time.Minute))
	require.Empty(t, token)
}

func TestTokenStaysInUseUntilItExpiresIfNoNewOneIsFetched(t *testing.T) {
	c := tokenCache{}.fetched("one", time.Hour, tokenStart)
	failure := errors.New("down")
	at := tokenStart.Add(50 * time.Minute)
	c = c.failed(failure, at)
	token, err := c.lookup(at)
	require.NoError(t, err)
	require.Equal(t, "one", token)
	token, err = c.lookup(at.Add(shortestRetry))
	require.NoError(t, err)
	require.Empty(t, token, "fetch again")
	c = c.failed(failure, tokenStart.Add(time.Hour))
	_, err = c.lookup(tokenStart.Add(time.Hour))
	require.ErrorIs(t, err, failure, "the token has expired")
	require.False(t, c.valid(tokenStart.Add(time.Hour)))
}

func TestFetchesThatFailAreLimited(t *testing.T) {
	var c tokenCache
	at, fetches := tokenStart, 0
	for ; at.Before(tokenStart.Add(time.Minute)); at = at.Add(10 * time.Millisecond) {
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
