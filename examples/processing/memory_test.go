package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMemoryCostsAndLatenciesAreAdditionsToTheTurn(t *testing.T) {
	for name, value := range map[string]string{
		"AGENT_NAME": "a", memoirThreshold: "60", memoirInterval: "5", tenantSeparator: ":",
	} {
		t.Setenv(name, value)
	}
	read := func() (names []string, s settings, logged string) {
		core, logs := observer.New(zap.InfoLevel)
		s, err := readSettings(zap.New(core))
		require.NoError(t, err)
		s.announce(zap.New(core))
		for _, a := range s.additions {
			names = append(names, a.name)
		}
		for _, e := range logs.All() {
			logged += e.Message + "\n"
		}
		return names, s, logged
	}
	names, s, logged := read()
	require.Empty(t, names)
	require.Contains(t, logged, "MEMOIR_ENABLED is not set and counts as false")
	require.Equal(t, []string{memoirThreshold, memoirInterval, tenantSeparator}, s.withoutEffect())
	require.False(t, created(s, "a-memoir-context"))

	t.Setenv(memoirEnabled, "True")
	t.Setenv("BUDGET_PRICE_PER_TENANT_MONTH", "12.5")
	t.Setenv(toolLatencies, "true")
	names, s, logged = read()
	require.Equal(t, []string{"memory", "costs", "latencies"}, names)
	require.NotContains(t, logged, "MEMOIR_ENABLED is not set")
	require.NotContains(t, logged, "a session ends after 20 s")
	require.Equal(t, []string{memoirInterval}, s.withoutEffect(), "sessions end on time")
	for _, topic := range []string{"a-memoir-context", "a-session-cost", "a-latencies-table"} {
		require.True(t, created(s, topic), topic)
	}

	require.NoError(t, os.Unsetenv(memoirThreshold))
	_, _, logged = read()
	require.Contains(t, logged, "a session ends after 20 s")

	t.Setenv("PARTS", "sink")
	t.Setenv("ALLOWED_HOST_MAPPING", "b:http://b")
	_, s, _ = read()
	require.Equal(t, []string{
		"BUDGET_PRICE_PER_TENANT_MONTH", memoirEnabled, memoirInterval, tenantSeparator, toolLatencies,
	}, s.withoutEffect())
}

func created(s settings, topic string) bool {
	for _, spec := range s.catalog.Specs() {
		if spec.Name == topic {
			return spec.Created
		}
	}
	return false
}
