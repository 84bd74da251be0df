package door_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/turn/door"
)

func TestOpenDoorsAreLoggedOnce(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	s := newFixture(t, door.WithLogger(zap.New(core)), door.WithCallbackSecrets(" "))
	for range 3 {
		s.chat(`{"session_id":"secret","content":"secret"}`)
	}
	require.Equal(t, 1, logs.FilterMessageSnippet("chat door is open").Len())
	require.Equal(t, 1, logs.FilterMessageSnippet("tool callbacks are rejected").Len())
	require.Equal(t, 3, logs.FilterMessage("audit").Len())
	require.Equal(t, 5, logs.Len())
}

func TestInvalidDoorOptionsAreReportedByName(t *testing.T) {
	_, err := door.New("pilot", nil, door.WithBodyLimit(0),
		door.WithIdempotency(0, 1), door.WithIdempotency(time.Hour, 0), door.WithCORS(""),
		door.WithClock(nil), door.WithLogger(nil), door.WithCallbackServices(nil),
		door.WithAuthenticate(nil), door.WithAudit(nil), door.WithConcurrency(0),
		door.WithLimits(auth.Limits{Keys: -1}))
	require.ErrorIs(t, err, door.ErrConfig)
	for _, what := range []string{
		"WithBodyLimit", "WithIdempotency", "WithCORS", "WithClock", "WithLogger", "WithCallbackServices",
		"WithAuthenticate", "WithAudit", "WithConcurrency", "WithLimits", "publisher",
	} {
		require.Contains(t, err.Error(), what)
	}
	_, err = door.New("not an agent", &fakePublisher{})
	require.ErrorIs(t, err, door.ErrConfig)
}
