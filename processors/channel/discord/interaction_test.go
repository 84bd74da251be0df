package discord

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

var (
	private = ed25519.NewKeyFromSeed([]byte("01234567890123456789012345678901"))
	public  = hex.EncodeToString(private.Public().(ed25519.PublicKey))
	now     = time.Unix(1_700_000_000, 0)
)

func signed(at time.Time, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/discord", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	timestamp := strconv.FormatInt(at.Unix(), 10)
	r.Header.Set("X-Signature-Timestamp", timestamp)
	r.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, []byte(timestamp+body))))
	return r
}

func endpoint(t *testing.T, to adapter.Receiver) func(*http.Request) *httptest.ResponseRecorder {
	t.Helper()
	a, _ := newAdapter(t, nil, func(c *Config) { c.PublicKey, c.Clock = public, clock.NewFake(now) })
	h, err := a.Handler(to)
	require.NoError(t, err)
	return func(r *http.Request) *httptest.ResponseRecorder { return platformtest.Serve(h, r) }
}

const press = `{"id":"555","type":3,"token":"t","application_id":"1","guild_id":"600","channel_id":"701","channel":{"id":"701","type":11,"parent_id":"700"},
"member":{"nick":"Annie","roles":["r1"],"user":{"id":"9","username":"ann"}},"message":{"id":"801"},"data":{"component_type":2,"custom_id":"approve:g-1"}}`

func TestEndpointNeedsAKey(t *testing.T) {
	a, _ := newAdapter(t, nil)
	_, err := a.Handler(platformtest.NewInbox(0))
	require.ErrorContains(t, err, "Config.PublicKey")
}

func TestPingIsAnsweredWithPong(t *testing.T) {
	w := endpoint(t, platformtest.NewInbox(0))(signed(now, `{"id":"1","type":1}`))
	require.Equal(t, 200, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(t, `{"type":1}`, w.Body.String())
}

func TestPressedButtonIsADecision(t *testing.T) {
	i := platformtest.NewInbox(0)
	serve := endpoint(t, i)
	w := serve(signed(now, press))
	require.Equal(t, 200, w.Code)
	require.Equal(t, `{"type":6}`, w.Body.String())
	require.Equal(t, adapter.Inbound{
		Event: "interaction-555", Mentioned: true, Guild: "600", Roles: []string{"r1"}, Decision: &adapter.Decision{GateID: "g-1", Approve: true},
		Origin: topics.Origin{Channel: "discord", Account: "main", Recipient: "700", Thread: "701", MessageID: "801", User: "9", UserName: "Annie", Group: true},
	}, i.All()[0])
	dm := `{"id":"556","type":3,"channel_id":"702","user":{"id":"9","username":"ann"},"data":{"custom_id":"deny:g-2"}}`
	require.Equal(t, 200, serve(signed(now, dm)).Code)
	require.Equal(t, &adapter.Decision{GateID: "g-2"}, i.All()[1].Decision)
	require.False(t, i.All()[1].Origin.Group)
	require.Equal(t, 200, serve(signed(now, press)).Code)
	require.Equal(t, i.All()[0], i.All()[2], "a repeat has the same event, by which it is recognised")
}

func TestHostileInteractionsAreRefused(t *testing.T) {
	i := platformtest.NewInbox(0)
	serve := endpoint(t, i)
	other := signed(now, press)
	other.Header.Set("X-Signature-Ed25519", strings.Repeat("0", 128))
	changed := signed(now, press)
	changed.Header.Set("X-Signature-Timestamp", strconv.FormatInt(now.Unix()+1, 10))
	unsigned := signed(now, press)
	unsigned.Header.Del("X-Signature-Ed25519")
	for name, c := range map[string]struct {
		r    *http.Request
		want int
	}{
		"wrong signature": {other, 401}, "changed time": {changed, 401}, "no signature": {unsigned, 401},
		"replay":      {signed(now.Add(-6*time.Minute), press), 401},
		"future":      {signed(now.Add(6*time.Minute), press), 401},
		"huge":        {signed(now, strings.Repeat(" ", 1<<20)+press), 413},
		"not JSON":    {signed(now, `{`), 400},
		"command":     {signed(now, `{"id":"1","type":2}`), 400},
		"other press": {signed(now, strings.ReplaceAll(press, "approve:g-1", "buy")), 200},
		"no gate":     {signed(now, strings.ReplaceAll(press, "approve:g-1", "approve:")), 200},
		"a bot":       {signed(now, strings.ReplaceAll(press, `"username":"ann"`, `"bot":true`)), 200},
	} {
		require.Equal(t, c.want, serve(c.r).Code, name)
	}
	require.Empty(t, i.All())
}

func TestUnhandledPressFails(t *testing.T) {
	serve := endpoint(t, platformtest.NewInbox(1))
	require.Equal(t, 503, serve(signed(now, press)).Code)
	require.Equal(t, 200, serve(signed(now, press)).Code)
}

func TestResumeAddressIsCheckedAgainstTheGateways(t *testing.T) {
	a, _ := newAdapter(t, nil)
	for text, good := range map[string]bool{
		"wss://gateway-us-east1-b.discord.gg": true, "wss://gateway.discord.gg/": true, "wss://discord.gg.evil.example": false,
		"wss://evildiscord.gg": false, "ws://127.0.0.1:9": false, "https://gateway.discord.gg": false, "wss://u@x.discord.gg": false, "": false,
	} {
		require.Equal(t, good, a.resumeAt(text) != nil, text)
	}
	own, _ := newAdapter(t, nil, func(c *Config) { c.GatewayURL = "wss://gateway.example" })
	require.Nil(t, own.resumeAt("wss://x.discord.gg"))
	require.NotNil(t, own.resumeAt("wss://gateway.example/path"))
}

func written(id int, with string) string {
	return fmt.Sprintf(`{"id":"%d","channel_id":"702","author":{"id":"9","username":"ann","global_name":"Ann"},"content":"m%d","timestamp":"2026-11-23T17:00:00.000000+00:00","type":0%s}`, id, id, with)
}
