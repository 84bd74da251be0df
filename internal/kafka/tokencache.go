package kafka

import "time"

const (
	// refreshAt is the part of a token's lifetime after which a new one is fetched. Clients authenticate a connection again
	// after 85 to 95 % of what remains of its token's lifetime, and get a new token then.
	refreshAt = 0.8
	// unknownLifetime is how long a token is used whose lifetime is not known.
	unknownLifetime = time.Minute
	shortestRetry   = 250 * time.Millisecond
	longestRetry    = 10 * time.Second
)

// tokenCache is the state of an endpoint's token. Its zero value has none.
type tokenCache struct {
	token    string
	refresh  time.Time // when to fetch a new token
	expires  time.Time
	failure  error // of the last fetch; nil after a success
	failures int   // in a row
	retry    time.Time
}

// lookup decides what to return at a time: a token, the failure of the last fetch, or neither, which means that a token
// must be fetched. A failure is returned for a while without a fetch: clients connect again and again, and a provider locks
// out a client that sends a wrong secret too often.
func (c tokenCache) lookup(now time.Time) (token string, failure error) {
	switch {
	case c.token != "" && now.Before(c.refresh):
		return c.token, nil
	case c.failure == nil || !now.Before(c.retry):
		return "", nil
	case c.valid(now):
		return c.token, nil
	default:
		return "", c.failure
	}
}

func (c tokenCache) valid(now time.Time) bool { return c.token != "" && now.Before(c.expires) }

// fetched returns the state after a fetch that was successful. lifetime is 0 if it is not known.
func (c tokenCache) fetched(token string, lifetime time.Duration, now time.Time) tokenCache {
	if lifetime <= 0 {
		return tokenCache{token: token, refresh: now.Add(unknownLifetime), expires: now.Add(unknownLifetime)}
	}
	early := time.Duration(float64(lifetime) * refreshAt)
	return tokenCache{token: token, refresh: now.Add(early), expires: now.Add(lifetime)}
}

// failed returns the state after a fetch that failed. A token that has not expired stays in use.
func (c tokenCache) failed(err error, now time.Time) tokenCache {
	wait := shortestRetry
	for range min(c.failures, 6) {
		wait *= 2
	}
	c.failure, c.failures, c.retry = err, c.failures+1, now.Add(min(wait, longestRetry))
	return c
}
