package discord

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// redirected sends the requests of discordgo, whose addresses are constants of its package, to the configured address. It keeps what
// the response says of its status and rate limits in the request's context, because discordgo loses it if it cannot read the body.
// It removes the headers of rate limits, by which discordgo would wait.
type redirected struct {
	to *url.URL
	by http.RoundTripper
}

// seen is what a response said.
type seen struct {
	status int
	header http.Header
}

type seenKey struct{}

func (t redirected) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "discord.com" {
		return nil, errors.New("discord: request to another host")
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = t.to.Scheme, t.to.Host, t.to.Host
	r.URL.Path, r.URL.RawPath = t.to.Path+r.URL.Path, ""
	response, err := t.by.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if s, ok := r.Context().Value(seenKey{}).(*seen); ok {
		s.status, s.header = response.StatusCode, response.Header.Clone()
	}
	for name := range response.Header {
		if strings.HasPrefix(name, "X-Ratelimit-") {
			response.Header.Del(name)
		}
	}
	return response, nil
}

// call makes a request and returns the body of the response. Its error is always an *adapter.Failure.
func (a *Adapter) call(ctx context.Context, method, endpoint string, params any) ([]byte, error) {
	if wait := a.pause(); wait > 0 {
		return nil, &adapter.Failure{Reason: "rate limit of the account", Status: http.StatusTooManyRequests, RetryAfter: wait}
	}
	var body []byte
	if params != nil {
		var err error
		if body, err = discordgo.Marshal(params); err != nil {
			return nil, &adapter.Failure{Reason: "request cannot be made", Final: true}
		}
	}
	var s seen
	// The limiter is new each time, because that of a session keeps an entry for every channel and waits without ctx.
	bucket := discordgo.NewRatelimiter().LockBucket(endpoint)
	result, err := a.session.RequestWithLockedBucket(method, endpoint, "application/json", body, bucket, 0,
		discordgo.WithContext(context.WithValue(ctx, seenKey{}, &s)))
	if err == nil {
		return result, nil
	}
	return nil, a.failure(s, err)
}

// missing are the codes of https://discord.com/developers/docs/topics/opcodes-and-status-codes#json that are passed on with a
// text.
var missing = map[int]string{
	10003: "unknown channel", 10008: "unknown message", 10013: "unknown user", 50001: "missing access",
	50007: "the user takes no messages of the bot", 50013: "missing permissions", 50083: "thread is archived", 160005: "thread is locked",
}

func (a *Adapter) failure(s seen, err error) *adapter.Failure {
	if s.status == 0 {
		return platform.Failure(err)
	}
	f := platform.StatusFailure(s.status, s.header, a.config.Clock.Now())
	if f == nil {
		// The response was lost after its status. Discord has the message, which the nonce of the retry identifies.
		return platform.Failure(err)
	}
	var limited *discordgo.RateLimitError
	var refused *discordgo.RESTError
	switch {
	case errors.As(err, &limited) && limited.RateLimit != nil && limited.TooManyRequests != nil:
		if wait := limited.RetryAfter; wait > 0 {
			f.RetryAfter = platform.Wait(int64(wait/time.Millisecond)+1, time.Millisecond) // it was rounded down
		}
	case errors.As(err, &refused) && refused.Message != nil:
		if code := refused.Message.Code; code != 0 {
			f.Reason += ", code " + strconv.Itoa(code)
			if known, ok := missing[code]; ok {
				f.Reason = known
			}
		}
	case f.Status == http.StatusForbidden, f.Status == http.StatusNotFound:
		f.Final = false // not Discord's answer: a proxy, or a wrong address, which the operator can repair
	}
	if f.Status == http.StatusTooManyRequests && global(s.header) {
		a.mu.Lock()
		a.paused = a.config.Clock.Now().Add(f.RetryAfter)
		a.mu.Unlock()
	}
	return f
}

// maxWait bounds a retry_after.
const maxWait = 7 * 24 * time.Hour

// global reports whether a rate limit is that of the account
// (https://discord.com/developers/docs/topics/rate-limits#header-format).
func global(h http.Header) bool {
	return h.Get("X-RateLimit-Global") != "" || slices.Contains(h.Values("X-RateLimit-Scope"), "global")
}

// pause returns how long the account must not be used because of a global rate limit.
func (a *Adapter) pause() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.paused.Sub(a.config.Clock.Now()), 0)
}
