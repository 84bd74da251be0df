package invoke

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/auth"
)

func TestNewRejectsInvalidOptions(t *testing.T) {
	_, err := New(nil)
	require.ErrorIs(t, err, ErrDoor)
	for name, opt := range map[string]Option{
		"WithBodyLimit": WithBodyLimit(0), "WithBatchLimit": WithBatchLimit(0), "WithConcurrency": WithConcurrency(0),
		"WithWriteTimeout": WithWriteTimeout(-time.Second), "WithCORS": WithCORS(""), "WithRandom": WithRandom(nil),
		"WithClock": WithClock(nil), "WithLogger": WithLogger(nil), "WithCapability": WithCapability(Capability{Shape: 7}),
		"WithAuthenticate": WithAuthenticate(nil), "WithAudit": WithAudit(nil), "WithLimits": WithLimits(auth.Limits{Keys: -1}),
		"origin": WithCORS("example.com/path"),
	} {
		_, err := New(newLive(), opt)
		require.ErrorIs(t, err, ErrDoor)
		require.ErrorContains(t, err, name)
	}
}

func TestUnauthenticatedDoorLogsOneWarning(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	s := newSite(t, scripted(t, hello), WithLogger(zap.New(core)))
	require.Equal(t, http.StatusOK, s.invoke(question).status)
	require.Equal(t, http.StatusOK, s.invoke(question, "Accept", "text/event-stream").status)
	require.Equal(t, 2, logs.FilterMessage("audit").Len())
	require.Equal(t, 3, logs.Len())
	require.Contains(t, logs.All()[0].Message, "unauthenticated")

	core, logs = observer.New(zap.DebugLevel)
	newSite(t, scripted(t, hello), WithLogger(zap.New(core)), WithAuthenticate(func(*http.Request) (auth.Caller, error) {
		return auth.Caller{}, nil
	}))
	require.Zero(t, logs.Len())
}

func TestWithCapabilityOverridesTheAgents(t *testing.T) {
	agent := scripted(t, hello)
	agent.capability.Shape = BatchOnly
	s := newSite(t, agent, WithCapability(Capability{Shape: StreamOnly}))
	require.Equal(t, "200 application/x-ndjson", s.invoke(`{}`).kind())
}

func TestErrorTextIsSanitized(t *testing.T) {
	for in, want := range map[string]string{
		"": runText, "\n": runText, " a ": "a", "a\nb": "a", "Traceback (most recent call last)": runText, "\xff": "\ufffd",
		`File "x.py", line 7`: runText, "goroutine 1 [running]": runText, "\n\nb": "b",
		strings.Repeat("é", 2001): strings.Repeat("é", 2000) + "…",
	} {
		require.Equal(t, want, Sanitize(in))
	}
}
