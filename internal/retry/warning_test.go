package retry_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/retry"
)

var errNoTopic = errors.New("topic does not exist")

// minutes runs a loop that fails every second, and returns the seconds at which it logs.
func minutes(n int, at *clock.Fake, logs *observer.ObservedLogs, try func(second int)) (logged []int) {
	for second := range n * 60 {
		before := logs.Len()
		try(second)
		if logs.Len() > before {
			logged = append(logged, second)
		}
		at.Advance(time.Second)
	}
	return logged
}

func newWarning() (*retry.Warning, *clock.Fake, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	at := clock.NewFake(time.Unix(1_700_000_000, 0))
	return retry.NewWarning(zap.New(core), at, "waiting", "it is over"), at, logs
}

func TestWarningIsRepeatedWithBackoffAndEnds(t *testing.T) {
	w, at, logs := newWarning()
	w.Over()
	require.Zero(t, logs.Len(), "nothing was wrong")
	logged := minutes(5, at, logs, func(int) { w.Failed(errNoTopic, zap.String("topic", "a")) })
	require.Equal(t, []int{0, 5, 15, 35, 75, 135, 195, 255}, logged)
	require.Equal(t, map[string]any{"topic": "a", "error": "topic does not exist"}, logs.All()[0].ContextMap())
	w.Over()
	w.Over()
	last := logs.All()[len(logged):]
	require.Len(t, last, 1)
	require.Equal(t, "it is over", last[0].Message)
	require.Equal(t, map[string]any{"after": 5 * time.Minute}, last[0].ContextMap())
	at.Advance(time.Minute)
	w.Failed(errNoTopic)
	require.Equal(t, len(logged)+2, logs.Len(), "a later failure is logged at once")
}

func TestNewReasonIsLoggedAtOnce(t *testing.T) {
	w, at, logs := newWarning()
	require.Equal(t, []int{0, 3, 8, 18, 38}, minutes(1, at, logs, func(second int) {
		if second < 3 {
			w.Failed(errNoTopic)
		} else {
			w.Failed(errors.New("no leader"))
		}
	}))
	w, at, logs = newWarning()
	require.Len(t, minutes(1, at, logs, func(second int) { w.Failed(errors.New(strconv.Itoa(second))) }), 8+3, "errors that differ each time")
}

func TestLoopThatFailsEverySecondTimeIsQuiet(t *testing.T) {
	w, at, logs := newWarning()
	minutes(5, at, logs, func(second int) {
		if second%2 == 0 {
			w.Failed(errNoTopic)
		} else {
			w.Over()
		}
	})
	require.LessOrEqual(t, logs.Len(), 2*8)
}

// Loops that do not know when they work again do not call Over.
func TestFailureAfterAMinuteWithoutOneIsNew(t *testing.T) {
	w, at, logs := newWarning()
	minutes(1, at, logs, func(second int) { w.Failed(errors.New(strconv.Itoa(second))) })
	at.Advance(time.Minute)
	before := logs.Len()
	w.Failed(errNoTopic)
	w.Failed(errors.New("no leader"))
	require.Equal(t, before+2, logs.Len(), "reasons that were not logged are logged, however many there were before")
}

func TestNilWarningLogsNothing(t *testing.T) {
	var w *retry.Warning
	w.Failed(errNoTopic)
	w.Over()
}
