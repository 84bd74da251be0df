package turn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
)

func TestBadFieldsAreRefusedByName(t *testing.T) {
	for want, c := range map[string]Config{
		"ThinkTimeout is -1ns": {ThinkTimeout: -1}, "ToolTimeout is -1s": {ToolTimeout: -time.Second}, "RouteTTL is 1µs": {RouteTTL: time.Microsecond},
		"RememberFor is -1ns": {RememberFor: -1}, "RememberCount is -1": {RememberCount: -1}, "QueueLimit is -1": {QueueLimit: -1},
		`Policy is "drop"`: {Policy: "drop"}, "SupersedeAfter is 0": {Policy: Supersede}, "RecordLimit is 1000": {RecordLimit: 1000},
		"RowLimit is 2097152": {RowLimit: 2 << 20}, "IdlePurge is -1ns": {IdlePurge: -1}, "MaxSteps is -1": {MaxSteps: -1},
		"HistoryLimit.Bytes is 100, want 1024": {HistoryLimit: HistoryLimit{Bytes: 100}},
		"HistoryLimit.Messages is -1":          {HistoryLimit: HistoryLimit{Messages: -1}},
		"Compaction.Keep is -1":                {Compaction: &Compaction{Keep: -1}},
		"MaxCost is NaN":                       {MaxCost: math.NaN()},
		"Approval is invalid: ":                {Approval: &approval.Policy{TTL: -1}},
		"SupersedeGates needs":                 {SupersedeGates: true},
		"Tenants is nil":                       {Budgets: Budgets{Tenant: Budget{Day: 1}}},
	} {
		_, err := Graph("quay", c)
		require.ErrorIs(t, err, ErrConfig, want)
		require.ErrorContains(t, err, want)
	}
	_, err := Graph(" ", Config{})
	require.ErrorContains(t, err, "agent")
}

func TestDefaultsAreFlightDecksButForTheMemory(t *testing.T) {
	var c Config
	require.NoError(t, c.complete())
	require.Equal(t, Config{
		ThinkTimeout: 600 * time.Second, ToolTimeout: 300 * time.Second, RouteTTL: 24 * time.Hour,
		RememberFor: 24 * time.Hour, RememberCount: 1000, QueueLimit: 16, Policy: Queue, MaxSteps: 100,
		RecordLimit: 1 << 20, RowLimit: 1<<20 - 64<<10,
	}, c)
	require.Equal(t, HistoryLimit{Bytes: 480 << 10}, c.historyLimit())
}

func TestEnvironmentSetsFields(t *testing.T) {
	env := map[string]string{
		"THINK_TIMEOUT_MS": "1000", "ASYNC_TOOL_TIMEOUT_MS": " 2000 ", "TOOL_AGG_TOMBSTONE_TTL_MS": "3000",
		"REPLY_TO_STATE_TTL_MS": "4000", "KAFKA_MAX_REQUEST_SIZE": "2097152",
		"THINK_SUPERSEDE_AFTER_MS": "5000", "THINK_MAX_STEPS": "7", "COMPACTION_TIMEOUT_MS": "6000", "HISTORY_MAX_BYTES": "4096", "HISTORY_MAX_MESSAGES": "40", "BUDGET_PRICE_PER_SESSION": "1.5",
		"SESSION_IDLE_PURGE_MS": "6000",
	}
	c, err := ConfigFromEnv(lookup(env))
	require.NoError(t, err)
	require.Equal(t, Config{
		ThinkTimeout: time.Second, ToolTimeout: 2 * time.Second, RememberFor: 3 * time.Second, RouteTTL: 4 * time.Second,
		SupersedeAfter: 5 * time.Second, HistoryLimit: HistoryLimit{Bytes: 4096, Messages: 40}, MaxSteps: 7,
		Compaction: &Compaction{Timeout: 6 * time.Second}, MaxCost: 1.5, IdlePurge: 6 * time.Second, RecordLimit: 2 << 20,
	}, c)
	require.NoError(t, c.complete())
	require.Equal(t, Supersede, c.Policy)
	require.Equal(t, 2<<20-64<<10, c.RowLimit)
	for name := range env {
		require.Contains(t, EnvironmentNames(), name)
	}

	c, err = ConfigFromEnv(lookup(map[string]string{"THINK_TIMEOUT_MS": " "}))
	require.NoError(t, err)
	require.Empty(t, c, "blank is unset")
}

func TestBadEnvironmentIsRefusedByName(t *testing.T) {
	for name, value := range map[string]string{
		"THINK_TIMEOUT_MS": "0", "ASYNC_TOOL_TIMEOUT_MS": "-1", "TOOL_AGG_TOMBSTONE_TTL_MS": "soon",
		"REPLY_TO_STATE_TTL_MS": "99999999999999999999", "KAFKA_MAX_REQUEST_SIZE": "12",
		"THINK_MAX_STEPS": "0", "BUDGET_PRICE_PER_SESSION": "much", "SESSION_IDLE_PURGE_MS": "-1",
	} {
		_, err := ConfigFromEnv(lookup(map[string]string{name: value}))
		require.ErrorIs(t, err, ErrEnvironment)
		require.ErrorContains(t, err, name)
	}
	_, err := ConfigFromEnv(lookup(map[string]string{"THINK_TIMEOUT_MS": "x", "ASYNC_TOOL_TIMEOUT_MS": "y"}))
	require.ErrorContains(t, err, "THINK_TIMEOUT_MS")
	require.ErrorContains(t, err, "ASYNC_TOOL_TIMEOUT_MS")
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}
