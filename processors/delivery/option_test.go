package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestErrorNamesTheInvalidOption(t *testing.T) {
	for want, opt := range map[string]Option{
		"lease":                         WithLease(0),
		"time to live":                  WithTTL(-1),
		"route TTL":                     WithRoutes(0, time.Second),
		"route wait":                    WithRoutes(time.Hour, 0),
		"keep dead deliveries":          WithKeepDead(0),
		"remember time":                 WithRemembered(0, 1),
		"remember count":                WithRemembered(time.Hour, 0),
		"open limit":                    WithOpenLimit(0),
		"record limit":                  WithRecordLimit(1000),
		"row limit":                     WithRowLimit(2 << 20),
		"breaker failures":              WithBreaker(Breaker{Failures: -1}),
		"breaker is open for":           WithBreaker(Breaker{Failures: 1}),
		"service default: budget":       WithDefaultService(Service{Budget: -1}),
		"service harbor: initial wait":  WithService("harbor", Service{Initial: time.Minute}),
		"service harbor: 1001 attempts": WithService("harbor", Service{Attempts: 1001}),
		"service harbor: -1 in flight":  WithService("harbor", Service{InFlight: -1}),
	} {
		for _, graph := range []func() error{
			func() error { _, err := Graph("quay", opt); return err },
			func() error { _, err := RoutesGraph("quay", opt); return err },
		} {
			require.ErrorIs(t, graph(), ErrOption, want)
			require.ErrorContains(t, graph(), want)
		}
	}
	_, err := Graph(" ")
	require.ErrorContains(t, err, "agent")
	_, err = RoutesGraph(" ")
	require.ErrorContains(t, err, "agent")
}

func TestServiceTakesZeroFieldsFromTheDefault(t *testing.T) {
	r, err := rulesOf([]Option{
		WithDefaultService(Service{Budget: time.Minute}),
		WithService("harbor", Service{Ordered: true, Longest: time.Second}),
		WithService("pier", Service{Kind: topics.KindFunction}),
	})
	require.NoError(t, err)
	require.Equal(t, Service{
		Kind: "http", Budget: time.Minute, Initial: time.Second, Longest: time.Second, Attempts: 100,
		InFlight: 32, Ordered: true,
	}, r.service("harbor"))
	require.Equal(t, "function", r.service("pier").Kind)
	require.Equal(t, 15*time.Second, r.service("other").Longest)
}

func TestEnvironmentSetsOptions(t *testing.T) {
	env := map[string]string{
		"REPLY_RETRY_MAX_MS": " 60000 ", "REPLY_TO_STATE_TTL_MS": "4000", "KAFKA_MAX_REQUEST_SIZE": "2097152",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	opts, err := OptionsFromEnv(lookup)
	require.NoError(t, err)
	r, err := rulesOf(opts)
	require.NoError(t, err)
	require.Equal(t, time.Minute, r.Default.Budget)
	require.Equal(t, 4*time.Second, r.RouteTTL)
	require.Equal(t, 2<<20, r.RecordLimit)
	for name := range env {
		require.Contains(t, EnvironmentNames(), name)
		bad := map[string]string{name: "soon"}
		_, err := OptionsFromEnv(func(n string) (string, bool) { v, ok := bad[n]; return v, ok })
		require.ErrorIs(t, err, ErrEnvironment)
		require.ErrorContains(t, err, name)
	}
	env = nil
	opts, err = OptionsFromEnv(lookup)
	require.NoError(t, err)
	require.Empty(t, opts)
}
