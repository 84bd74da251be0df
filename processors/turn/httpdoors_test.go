package turn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/turn"
)

func TestOpenDoorsAreLoggedOnce(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	s := newSite(t, turn.WithDoorLogger(zap.New(core)), turn.WithCallbackSecrets(" "))
	for range 3 {
		s.chat(`{"session_id":"secret","content":"secret"}`)
	}
	require.Equal(t, 1, logs.FilterMessageSnippet("chat door is open").Len())
	require.Equal(t, 1, logs.FilterMessageSnippet("tool callbacks are rejected").Len())
	require.Equal(t, 2, logs.Len())
}

func TestInvalidDoorOptionsAreReportedByName(t *testing.T) {
	_, err := turn.NewDoors("pilot", nil, turn.WithBodyLimit(0),
		turn.WithIdempotency(0, 1), turn.WithIdempotency(time.Hour, 0), turn.WithCORS(""),
		turn.WithDoorClock(nil), turn.WithDoorLogger(nil), turn.WithCallbackServices(nil))
	require.ErrorIs(t, err, turn.ErrDoors)
	for _, what := range []string{
		"WithBodyLimit", "WithIdempotency", "WithCORS", "WithDoorClock", "WithDoorLogger", "WithCallbackServices",
		"publisher",
	} {
		require.Contains(t, err.Error(), what)
	}
	_, err = turn.NewDoors("not an agent", &paper{})
	require.ErrorIs(t, err, turn.ErrDoors)
}
