package auth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

var defaults = auth.Limits{
	Caller: auth.Share{Open: 1, PerSecond: 2, Burst: 3}, Session: auth.Share{Open: 4, PerSecond: 5, Burst: 6},
	BodyBytes: 70, CallerBodyBytes: 30, BodyRate: 8, BodyIdle: 9 * time.Second, Keys: 10,
}

func TestZeroFieldsKeepTheirDefaults(t *testing.T) {
	got, err := auth.Limits{}.Or(defaults)
	require.NoError(t, err)
	require.Equal(t, defaults, got)
	set := auth.Limits{Caller: auth.Share{Burst: 7}, Session: auth.Share{Open: 8}, BodyBytes: 20, BodyIdle: time.Second}
	got, err = set.Or(defaults)
	require.NoError(t, err)
	want := defaults
	want.Caller.Burst, want.Session.Open, want.BodyBytes, want.BodyIdle = 7, 8, 20, time.Second
	want.CallerBodyBytes = 20 // one caller has at most what all have
	require.Equal(t, want, got)
}

func TestBadLimitsAreNamed(t *testing.T) {
	for name, l := range map[string]auth.Limits{
		"Caller.Open": {Caller: auth.Share{Open: -1}}, "Session.Burst": {Session: auth.Share{Burst: -1}},
		"BodyIdle": {BodyIdle: -1}, "CallerBodyBytes": {BodyBytes: 1, CallerBodyBytes: 2}, "Keys": {Keys: -1},
	} {
		_, err := l.Or(defaults)
		require.ErrorIs(t, err, auth.ErrLimits)
		require.ErrorContains(t, err, name)
	}
}
