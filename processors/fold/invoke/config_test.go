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

func TestNewRejectsInvalidConfigurations(t *testing.T) {
	_, err := New(nil, Config{})
	require.ErrorIs(t, err, ErrConfig)
	for name, c := range map[string]Config{
		"BatchLimit": {BatchLimit: -1}, "Capability": {Capability: Capability{Shape: 7}},
		"Limits": {Door: auth.Door{Limits: auth.Limits{Keys: -1}}}, "Origins": {Door: auth.Door{Origins: []string{"example.com/path"}}},
	} {
		_, err := New(newLive(), c)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, ": "+name+" ")
	}
}

func TestNegativeTimesMeanNone(t *testing.T) {
	_, err := New(newLive(), Config{Keepalive: -time.Second, WriteTimeout: -time.Minute})
	require.NoError(t, err)
	_, err = NewBuffered(scripted(t, hello), BufferConfig{KeepFor: -time.Hour})
	require.NoError(t, err)
}

func TestUnauthenticatedDoorLogsOneWarning(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	s := newSite(t, scripted(t, hello), func(c *Config) { c.Logger = zap.New(core) })
	require.Equal(t, http.StatusOK, s.invoke(question).status)
	require.Equal(t, http.StatusOK, s.invoke(question, "Accept", "text/event-stream").status)
	require.Equal(t, 2, logs.FilterMessage("audit").Len())
	require.Equal(t, 3, logs.Len())
	require.Contains(t, logs.All()[0].Message, "unauthenticated")

	core, logs = observer.New(zap.DebugLevel)
	newSite(t, scripted(t, hello), func(c *Config) {
		c.Logger = zap.New(core)
		c.Authenticate = func(*http.Request) (auth.Caller, error) {
			return auth.Caller{}, nil
		}
	})
	require.Zero(t, logs.Len())
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
