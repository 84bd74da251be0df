package discord

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// call makes a request and returns the answer. endpoint is one of discordgo's, whose host is replaced by the configured address. The
// error is always an *adapter.Failure.
func (a *Adapter) call(ctx context.Context, method, endpoint string, params any) (platform.Answer, error) {
	if wait := a.pause(); wait > 0 {
		return platform.Answer{}, &adapter.Failure{Reason: "rate limit of the account", Status: http.StatusTooManyRequests, RetryAfter: wait}
	}
	to := a.config.BaseURL + strings.TrimPrefix(endpoint, strings.TrimSuffix(discordgo.EndpointDiscord, "/"))
	answer, err := platform.DoWith(ctx, a.client, method, to, http.Header{
		"Authorization": {"Bot " + a.config.Token}, "User-Agent": {"DiscordBot (https://github.com/turntable-streams/turntable, 1)"},
	}, params)
	if answer.Status != 0 { // also if the body was cut: the status and its headers say when to try again
		if f := a.failure(answer); f != nil {
			err = f
		}
	}
	return answer, err
}

// missing are the codes of https://discord.com/developers/docs/topics/opcodes-and-status-codes#json that are passed on with a
// text.
var missing = map[int]string{
	10003: "unknown channel", 10008: "unknown message", 10013: "unknown user", 50001: "missing access",
	50007: "the user takes no messages of the bot", 50013: "missing permissions", 50083: "thread is archived", 160005: "thread is locked",
}

func (a *Adapter) failure(answer platform.Answer) *adapter.Failure {
	f := platform.StatusFailure(answer.Status, answer.Header, a.config.Clock.Now())
	if f == nil {
		return nil
	}
	var refused struct {
		Code  int     `json:"code"`
		Retry float64 `json:"retry_after"` // in seconds
	}
	switch err := platform.Decode(answer.Body, &refused); {
	case err != nil:
		platform.Explain(f, "")
	case f.Status == http.StatusTooManyRequests:
		if refused.Retry > 0 {
			f.RetryAfter = platform.Wait(int64(min(refused.Retry, 1<<30)*1000)+1, time.Millisecond) // it was rounded down
		}
	case missing[refused.Code] != "":
		f.Reason = missing[refused.Code]
	case refused.Code != 0:
		f.Reason += ", code " + strconv.Itoa(refused.Code)
	}
	if f.Status == http.StatusTooManyRequests && global(answer.Header) {
		a.mu.Lock()
		a.paused = a.config.Clock.Now().Add(f.RetryAfter)
		a.mu.Unlock()
	}
	return f
}

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

// Check implements adapter.Checker with https://discord.com/developers/docs/resources/user#get-current-user.
func (a *Adapter) Check(ctx context.Context) error {
	_, err := a.call(ctx, http.MethodGet, discordgo.EndpointUser("@me"), nil)
	return err
}
