package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestErrorNamesTheInvalidField(t *testing.T) {
	services := func(s Service) Config { return Config{Services: map[string]Service{"harbor": s}} }
	for want, c := range map[string]Config{
		"Lease is -1ns": {Lease: -1}, "TTL is -1ns": {TTL: -1}, "RouteTTL is -1ns": {RouteTTL: -1}, "RouteWait is -1ns": {RouteWait: -1},
		"KeepDead is -1ns": {KeepDead: -1}, "RememberFor is -1ns": {RememberFor: -1}, "RememberCount is -1": {RememberCount: -1},
		"OpenLimit is -1": {OpenLimit: -1}, "RecordLimit is 1000": {RecordLimit: 1000}, "RowLimit is 2097152": {RowLimit: 2 << 20},
		"Breaker.Open is -1ns":                       {Breaker: Breaker{Open: -1}},
		"Breaker.Longest is 1s":                      {Breaker: Breaker{Longest: time.Second}},
		"DefaultService.Budget is -1ns":              {DefaultService: Service{Budget: -1}},
		`Services["harbor"].Longest is 15s, want at`: services(Service{Initial: time.Minute}),
		`Services["harbor"].Attempts is 1001`:        services(Service{Attempts: 1001}),
		`Services["harbor"].InFlight is -1`:          services(Service{InFlight: -1}),
	} {
		for _, graph := range []func() error{
			func() error { _, err := Graph("quay", c); return err },
			func() error { _, err := RoutesGraph("quay", c); return err },
		} {
			require.ErrorIs(t, graph(), ErrConfig, want)
			require.ErrorContains(t, graph(), want)
		}
	}
	_, err := Graph(" ", Config{})
	require.ErrorContains(t, err, "agent")
	_, err = RoutesGraph(" ", Config{})
	require.ErrorContains(t, err, "agent")
}

func TestServiceTakesZeroFieldsFromTheDefault(t *testing.T) {
	c := Config{
		DefaultService: Service{Budget: time.Minute},
		Services:       map[string]Service{"harbor": {Ordered: true, Longest: time.Second}, "pier": {Kind: topics.KindFunction}},
	}
	require.NoError(t, c.complete())
	require.Equal(t, Service{
		Kind: "http", Budget: time.Minute, Initial: time.Second, Longest: time.Second, Attempts: 100,
		InFlight: 32, Ordered: true,
	}, c.service("harbor"))
	require.Equal(t, "function", c.service("pier").Kind)
	require.Equal(t, 15*time.Second, c.service("other").Longest)
}

func TestCompletingAgainChangesNothing(t *testing.T) {
	c := Config{Breaker: Breaker{Failures: -7}}
	require.NoError(t, c.complete())
	once := c
	require.NoError(t, c.complete())
	require.Equal(t, once, c)
	require.Negative(t, c.Breaker.Failures, "the circuit never opens")
}

func TestEnvironmentSetsFields(t *testing.T) {
	env := map[string]string{
		"REPLY_RETRY_MAX_MS": " 60000 ", "REPLY_TO_STATE_TTL_MS": "4000", "KAFKA_MAX_REQUEST_SIZE": "2097152",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	c, err := ConfigFromEnv(lookup)
	require.NoError(t, err)
	require.Equal(t, Config{DefaultService: Service{Budget: time.Minute}, RouteTTL: 4 * time.Second, RecordLimit: 2 << 20}, c)
	for name := range env {
		require.Contains(t, EnvironmentNames(), name)
		bad := map[string]string{name: "soon"}
		_, err := ConfigFromEnv(func(n string) (string, bool) { v, ok := bad[n]; return v, ok })
		require.ErrorIs(t, err, ErrEnvironment)
		require.ErrorContains(t, err, name)
	}
	env = nil
	c, err = ConfigFromEnv(lookup)
	require.NoError(t, err)
	require.Empty(t, c)
}
