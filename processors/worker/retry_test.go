package worker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var errBroken = errors.New("the tool is broken")

func TestRetryRules(t *testing.T) {
	permanent := errors.New("permanent")
	p := RetryPolicy{
		Limit: 3, Backoff: time.Second, MaxBackoff: 3 * time.Second, Jitter: -1,
		Retryable: func(err error) bool { return !errors.Is(err, permanent) },
	}.withDefaults()
	require.NoError(t, p.Invalid())

	for name, c := range map[string]struct {
		a    attempt
		want action
	}{
		"new":                              {attempt{0, 4}, call},
		"unlimited deliveries":             {attempt{2, -1}, call},
		"attempts used up":                 {attempt{3, 4}, bury},
		"the broker's last delivery":       {attempt{1, 0}, bury},
		"last delivery, never called here": {attempt{0, 0}, bury},
	} {
		require.Equal(t, c.want, p.first(c.a), name)
	}

	for name, c := range map[string]struct {
		number      int
		err         error
		interrupted bool
		want        action
		wait        time.Duration
	}{
		"success":                        {1, nil, false, settle, 0},
		"success after the end of ctx":   {1, nil, true, settle, 0},
		"first failure":                  {1, errBroken, false, call, time.Second},
		"second failure":                 {2, errBroken, false, call, 2 * time.Second},
		"last failure":                   {3, errBroken, false, bury, 0},
		"failure that is not retryable":  {1, permanent, false, bury, 0},
		"interrupted is no failure":      {3, errBroken, true, release, 0},
		"interrupted before a retryable": {1, permanent, true, release, 0},
	} {
		next, wait := p.after(attempt{c.number, -1}, c.err, c.interrupted, 0.5)
		require.Equal(t, c.want, next, name)
		require.Equal(t, c.wait, wait, name)
	}
	late := fmt.Errorf("later: %w", after(time.Minute))
	next, wait := p.after(attempt{1, -1}, late, false, 0.5)
	require.Equal(t, []any{call, time.Minute}, []any{next, wait}, "the error says how long to wait")
	require.Equal(t, 2*time.Second, p.Wait(2, after(time.Millisecond)), "and never shortens the wait")
	require.False(t, p.Last(1))
	require.True(t, p.Last(2))
	require.Equal(t, 3*time.Second, p.wait(60, nil, 0), "the wait is bounded")
}

// after is an error that says how long to wait.
type after time.Duration

func (after) Error() string               { return "overloaded" }
func (a after) RetryAfter() time.Duration { return time.Duration(a) }

func TestInvalidRetryPolicyIsRejected(t *testing.T) {
	for _, p := range []RetryPolicy{
		{Backoff: -1}, {Backoff: time.Minute, MaxBackoff: time.Second}, {Jitter: 1.1}, {Limit: -1},
	} {
		require.Error(t, p.withDefaults().Invalid(), "%+v", p)
	}
	require.NoError(t, RetryPolicy{}.withDefaults().Invalid())
	require.NoError(t, RetryPolicy{Backoff: time.Hour}.withDefaults().Invalid())
}

// Whatever the failures, a record is called at most Limit times and ends.
func TestEveryRecordEndsWithinItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := RetryPolicy{
			Limit: rapid.IntRange(1, 10).Draw(t, "limit"), Jitter: rapid.Float64Range(-1, 1).Draw(t, "jitter"),
			Backoff: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "backoff")),
		}.withDefaults()
		before := rapid.IntRange(0, 12).Draw(t, "before")
		a := attempt{before, rapid.IntRange(-1, 5).Draw(t, "remaining")}
		next, calls := p.first(a), 0
		for next == call {
			calls++
			a.number++
			var wait time.Duration
			next, wait = p.after(a, errBroken, false, rapid.Float64Range(0, 1).Draw(t, "random"))
			require.GreaterOrEqual(t, wait, time.Duration(0))
			require.LessOrEqual(t, wait, p.MaxBackoff)
		}
		require.Equal(t, bury, next)
		require.LessOrEqual(t, before+calls, max(p.Limit, before))
		if a.remaining == 0 {
			require.Zero(t, calls)
		}
	})
}
