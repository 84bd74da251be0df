package turnhttp_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

func TestOpenDoorsAreLoggedOnce(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	s := newFixture(t, func(c *turnhttp.Config) { c.Logger, c.CallbackSecrets = zap.New(core), []string{" "} })
	for range 3 {
		s.chat(`{"session_id":"secret","content":"secret"}`)
	}
	require.Equal(t, 1, logs.FilterMessageSnippet("chat door is open").Len())
	require.Equal(t, 1, logs.FilterMessageSnippet("tool callbacks are rejected").Len())
	require.Equal(t, 3, logs.FilterMessage("audit").Len())
	require.Equal(t, 5, logs.Len())
}

func TestShortCallbackSecretNeedsShortSecretsAndIsLogged(t *testing.T) {
	const short = "a secret of 20 bytes"
	_, err := turnhttp.New("pilot", &fakePublisher{}, turnhttp.Config{CallbackSecrets: []string{short}})
	require.ErrorIs(t, err, token.ErrSecret)
	core, logs := observer.New(zap.DebugLevel)
	_, err = turnhttp.New("pilot", &fakePublisher{}, turnhttp.Config{
		Door: auth.Door{Logger: zap.New(core)}, CallbackSecrets: []string{secret}, ShortSecrets: true,
	})
	require.NoError(t, err)
	require.Zero(t, logs.FilterMessageSnippet("secret is short").Len())
	s := newFixture(t, func(c *turnhttp.Config) {
		c.CallbackSecrets, c.ShortSecrets, c.Logger = []string{short}, true, zap.New(core)
	})
	require.Equal(t, 1, logs.FilterMessageSnippet("secret is short").Len())
	half := base64.RawURLEncoding.EncodeToString // as FlightDeck's dispatcher signs, which has no minimum
	sign := func(key string) string {
		payload := []byte(fmt.Sprintf(`{"session_id":"s","tool_use_id":"t1","agent":"pilot","exp":%d}`, noon.Add(time.Hour).Unix()))
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(payload)
		return half(payload) + "." + half(mac.Sum(nil))
	}
	callback := func(minted string) int {
		return s.send(request{path: turnhttp.ToolResponsePath, body: `{}`, headers: []string{"Authorization", "Bearer " + minted}}).status
	}
	require.Equal(t, 401, callback(sign("another secret of 20")))
	require.Equal(t, 202, callback(sign(short)))
}

func TestInvalidConfigurationIsReportedByField(t *testing.T) {
	_, err := turnhttp.New("not an agent", nil, turnhttp.Config{
		Door:        auth.Door{Concurrency: -1, Origins: []string{""}, Limits: auth.Limits{Keys: -1}},
		RecordLimit: 1, RememberFor: -1, RememberCount: -1, CallbackSecrets: []string{"short"},
	})
	require.ErrorIs(t, err, turnhttp.ErrConfig)
	for _, what := range []string{
		"Concurrency", "Origins", "Limits", "RecordLimit", "RememberFor", "RememberCount", "CallbackSecrets", "agent", "publisher",
	} {
		require.Contains(t, err.Error(), what+" ")
	}
}

// The turn needs room for more than the message: it would end such a message in an error output only later.
func TestMessageThatNoTurnHasRoomForIsRefusedAtOnce(t *testing.T) {
	s := newFixture(t, func(c *turnhttp.Config) { c.RecordLimit = 700 << 10 })
	body := func(size int) string {
		return `{"session_id":"s","content":"` + strings.Repeat("x", size) + `","reply":{"callbackService":"harbor"}}`
	}
	got := s.chat(body(619 << 10))
	require.Equal(t, 200, got.status, got.body)
	got = s.chat(body(620 << 10))
	require.Equal(t, 413, got.status)
	require.Equal(t, `{"error":"Request is too large for a record"}`, got.body)
	require.Len(t, s.publisher.records, 2, "no route is written either")

	s = newFixture(t)
	require.Equal(t, 413, s.chat(`{"session_id":"s","content":"`+strings.Repeat("x", 950<<10)+`"}`).status)
	require.Equal(t, 200, s.chat(`{"session_id":"s","content":"`+strings.Repeat("x", 600<<10)+`"}`).status)
}
