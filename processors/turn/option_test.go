package turn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBadOptionsAreRefusedByName(t *testing.T) {
	for want, opt := range map[string]Option{
		"think timeout":                WithThinkTimeout(0),
		"tool timeout":                 WithToolTimeout(-time.Second),
		"route TTL":                    WithRouteTTL(time.Microsecond),
		"remembered time":              WithRemembered(0, 1),
		"remembered count":             WithRemembered(time.Hour, 0),
		"queue limit":                  WithQueue(Queue, 0),
		"queue policy":                 WithQueue("drop", 1),
		"record limit":                 WithRecordLimit(1000),
		"row limit":                    WithRowLimit(2 << 20),
		"idle purge":                   WithIdlePurge(-1),
		"history limit is 100 bytes":   WithHistoryLimit(HistoryLimit{Bytes: 100}),
		"history limit is -1 messages": WithHistoryLimit(HistoryLimit{Messages: -1}),
		"step limit":                   WithMaxSteps(0),
		"cost limit":                   WithMaxCost(math.NaN()),
	} {
		_, err := Graph("quay", opt)
		require.ErrorIs(t, err, ErrOption, want)
		require.ErrorContains(t, err, want)
	}
	_, err := Graph(" ")
	require.ErrorContains(t, err, "agent")
}

func TestDefaultsAreFlightDecksButForTheMemory(t *testing.T) {
	o, err := optionsOf(nil)
	require.NoError(t, err)
	require.Equal(t, Rules{
		ThinkTimeout: 600 * time.Second, ToolTimeout: 300 * time.Second, RouteTTL: 24 * time.Hour,
		RememberFor: 24 * time.Hour, RememberCount: 1000, QueueLimit: 16, Policy: Queue, MaxSteps: 100,
		RecordLimit: 1 << 20, RowLimit: 1<<20 - 64<<10,
	}, o.rules)
	require.Equal(t, HistoryLimit{Bytes: 480 << 10}, o.rules.historyLimit())
}

func TestEnvironmentSetsOptions(t *testing.T) {
	env := map[string]string{
		"THINK_TIMEOUT_MS": "1000", "ASYNC_TOOL_TIMEOUT_MS": " 2000 ", "TOOL_AGG_TOMBSTONE_TTL_MS": "3000",
		"REPLY_TO_STATE_TTL_MS": "4000", "KAFKA_MAX_REQUEST_SIZE": "2097152",
		"THINK_SUPERSEDE_AFTER_MS": "5000", "THINK_MAX_STEPS": "7", "COMPACTION_TIMEOUT_MS": "6000", "HISTORY_MAX_BYTES": "4096", "HISTORY_MAX_MESSAGES": "40", "BUDGET_PRICE_PER_SESSION": "1.5",
		"SESSION_IDLE_PURGE_MS": "6000",
	}
	opts, err := OptionsFromEnv(lookup(env))
	require.NoError(t, err)
	o, err := optionsOf(opts)
	require.NoError(t, err)
	r := o.rules
	require.Equal(t, time.Second, r.ThinkTimeout)
	require.Equal(t, 2*time.Second, r.ToolTimeout)
	require.Equal(t, Supersede, r.Policy)
	require.Equal(t, 5*time.Second, r.SupersedeAfter)
	require.Equal(t, HistoryLimit{Bytes: 4096, Messages: 40}, r.History)
	require.Equal(t, 7, r.MaxSteps)
	require.Equal(t, &Compaction{Timeout: 6 * time.Second, Keep: 8}, r.Compaction)
	require.Equal(t, 1.5, r.MaxCost)
	require.Equal(t, 6*time.Second, r.IdleAfter)
	require.Equal(t, 3*time.Second, r.RememberFor)
	require.Equal(t, 4*time.Second, r.RouteTTL)
	require.Equal(t, 2<<20, r.RecordLimit)
	require.Equal(t, 2<<20-64<<10, r.RowLimit)
	for name := range env {
		require.Contains(t, EnvironmentNames(), name)
	}

	opts, err = OptionsFromEnv(lookup(map[string]string{"THINK_TIMEOUT_MS": " "}))
	require.NoError(t, err)
	require.Empty(t, opts, "blank is unset")
}

func TestBadEnvironmentIsRefusedByName(t *testing.T) {
	for name, value := range map[string]string{
		"THINK_TIMEOUT_MS": "0", "ASYNC_TOOL_TIMEOUT_MS": "-1", "TOOL_AGG_TOMBSTONE_TTL_MS": "soon",
		"REPLY_TO_STATE_TTL_MS": "99999999999999999999", "KAFKA_MAX_REQUEST_SIZE": "12",
		"THINK_MAX_STEPS": "0", "BUDGET_PRICE_PER_SESSION": "much", "SESSION_IDLE_PURGE_MS": "-1",
	} {
		_, err := OptionsFromEnv(lookup(map[string]string{name: value}))
		require.ErrorIs(t, err, ErrEnvironment)
		require.ErrorContains(t, err, name)
	}
	_, err := OptionsFromEnv(lookup(map[string]string{"THINK_TIMEOUT_MS": "x", "ASYNC_TOOL_TIMEOUT_MS": "y"}))
	require.ErrorContains(t, err, "THINK_TIMEOUT_MS")
	require.ErrorContains(t, err, "ASYNC_TOOL_TIMEOUT_MS")
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}
