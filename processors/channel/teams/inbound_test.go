package teams_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

func TestActivityIsReceivedWithItsOrigin(t *testing.T) {
	p, to := newPlatform(t), &platformtest.Inbox{}
	w := serve(open(t, p.config()), to, p.request(t, p.activity(inChannel+`,"type":"message","text":"<at>Bot</at>&nbsp;ask <at>Bob</at>\n",
		"entities":[{"type":"mention","text":"<at>Bot</at>","mentioned":{"id":"28:bot"}},{"type":"mention","text":"<at>Bob</at>","mentioned":{"id":"29:b"}}]`)))
	require.Equal(t, 200, w.Code)
	require.Equal(t, []adapter.Inbound{{
		Event: "19:abc@thread.tacv2;messageid=1699/1700", Text: "ask Bob", Mentioned: true, Guild: "team-1",
		Origin: topics.Origin{
			Channel: "teams", Account: "main", Recipient: "19:abc@thread.tacv2", Thread: "1699", MessageID: "1700", User: "aad-1",
			UserName: "Ann B", Group: true, Adapter: topics.Raw(`{"service_url":"` + p.service() + `","channel":true}`),
		},
		At: time.Date(2026, 1, 2, 3, 4, 0, 500e6, time.UTC),
	}}, to.Tried)
}

func TestPersonalConversationIsNotAGroup(t *testing.T) {
	p := newPlatform(t)
	for conversation, group := range map[string]bool{
		`{"conversationType":"personal","id":"a:1"}`: false, `{"id":"a:1"}`: false, `{"id":"a:1","isGroup":true}`: true,
		`{"conversationType":"groupChat","id":"19:x"}`: true, `{"conversationType":"new","id":"19:x"}`: true,
	} {
		to := &platformtest.Inbox{}
		require.Equal(t, 200, serve(open(t, p.config()), to, p.request(t, p.activity(`"type":"message","text":"hi","conversation":`+conversation))).Code)
		require.Len(t, to.Tried, 1)
		require.Equal(t, group, to.Tried[0].Origin.Group, conversation)
		require.False(t, to.Tried[0].Mentioned)
		require.Empty(t, to.Tried[0].Origin.Thread)
	}
}

func TestBotsAndOtherActivitiesAreDropped(t *testing.T) {
	p := newPlatform(t)
	message := p.activity(inChannel + `,"type":"message","text":"x"`)
	for name, body := range map[string]string{
		"own":          strings.Replace(message, "29:u", "28:bot", 1),
		"another bot":  strings.Replace(message, "29:u", "28:other", 1),
		"role":         strings.Replace(message, `"id":"29:u"`, `"id":"29:u","role":"bot"`, 1),
		"no sender":    strings.Replace(message, "29:u", "", 1),
		"update":       p.activity(inChannel + `,"type":"conversationUpdate","membersAdded":[{"id":"28:bot"}]`),
		"edit":         p.activity(inChannel + `,"type":"messageUpdate","text":"x"`),
		"reaction":     p.activity(inChannel + `,"type":"messageReaction"`),
		"other invoke": p.activity(inChannel + `,"type":"invoke","name":"task/fetch","value":{"x":1}`),
		"no room":      p.activity(`"type":"message","text":"x","conversation":{}`),
	} {
		to := &platformtest.Inbox{}
		require.Equal(t, 200, serve(open(t, p.config()), to, p.request(t, body)).Code, name)
		require.Empty(t, to.Tried, name)
	}
}

func TestTokensThatAreNotValidAreRefused(t *testing.T) {
	p := newPlatform(t)
	body := p.activity(inChannel + `,"type":"message","text":"x"`)
	with := func(name string, value any) string {
		c := p.claims()
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return "Bearer " + sign(t, 0, "key-0", c)
	}
	symmetric, err := gojwt.NewWithClaims(gojwt.SigningMethodHS256, p.claims()).SignedString([]byte(secret))
	require.NoError(t, err)
	unsigned, err := gojwt.NewWithClaims(gojwt.SigningMethodNone, p.claims()).SignedString(gojwt.UnsafeAllowNoneSignatureType)
	require.NoError(t, err)
	for name, header := range map[string]string{
		"none": "", "basic": "Basic " + sign(t, 0, "key-0", p.claims()), "garbage": "Bearer x.y.z",
		"another key": "Bearer " + sign(t, 1, "key-0", p.claims()), "unknown key": "Bearer " + sign(t, 0, "key-1", p.claims()),
		"issuer": with("iss", "https://sts.windows.net/x"), "no issuer": with("iss", nil), "audience": with("aud", "app-2"),
		"no audience": with("aud", nil), "expired": with("exp", start.Add(-6*time.Minute).Unix()), "no end": with("exp", nil),
		"not yet": with("nbf", start.Add(6*time.Minute).Unix()), "no service": with("serviceurl", nil), "HMAC": "Bearer " + symmetric,
		"unsigned": "Bearer " + unsigned, "service twice": "Bearer " + p.twice(t), "huge": "Bearer " + strings.Repeat("x", 20<<10),
	} {
		to := &platformtest.Inbox{}
		r := p.request(t, body)
		r.Header.Set("Authorization", header)
		w := serve(open(t, p.config()), to, r)
		require.Equal(t, 401, w.Code, name)
		require.Empty(t, to.Tried, name)
	}
	for name, header := range map[string]string{
		"skew": with("exp", start.Add(-4*time.Minute).Unix()), "skew before": with("nbf", start.Add(4*time.Minute).Unix()),
	} {
		r := p.request(t, body)
		r.Header.Set("Authorization", header)
		require.Equal(t, 200, serve(open(t, p.config()), &platformtest.Inbox{}, r).Code, name)
	}
}

// Whoever has no token must not occupy the door with a slow body.
func TestBodyIsReadOnlyWithAToken(t *testing.T) {
	p := newPlatform(t)
	read := false
	r := p.request(t, "")
	r.Header.Set("Authorization", "Bearer x.y.z")
	r.ContentLength = 10
	r.Body = io.NopCloser(reader(func([]byte) (int, error) { read = true; return 0, io.EOF }))
	require.Equal(t, 401, serve(open(t, p.config()), &platformtest.Inbox{}, r).Code)
	require.False(t, read)
}

type reader func([]byte) (int, error)

func (f reader) Read(b []byte) (int, error) { return f(b) }

func TestTokenMustBeForTheActivity(t *testing.T) {
	p := newPlatform(t)
	body := p.activity(inChannel + `,"type":"message","text":"x"`)
	for name, changed := range map[string]string{
		"another path":      strings.Replace(body, "/emea/", "/amer/", 1),
		"another host":      strings.Replace(body, p.url, "https://evil.example", 1),
		"not endorsed":      strings.Replace(body, `"msteams"`, `"directline"`, 1),
		"other endorsement": strings.Replace(body, `"msteams"`, `"webchat"`, 1),
		"no channel":        strings.Replace(body, `"msteams"`, `""`, 1),
	} {
		to := &platformtest.Inbox{}
		require.Equal(t, 403, serve(open(t, p.config()), to, p.request(t, changed)).Code, name)
		require.Empty(t, to.Tried, name)
	}
	p.endorsed = "slack"
	require.Equal(t, 403, serve(open(t, p.config()), &platformtest.Inbox{}, p.request(t, body)).Code, "the key is not endorsed for Teams")
	p.endorsed = "msteams"
	// A token for a service that is not configured, in an activity that names it too.
	c := p.claims()
	c["serviceurl"] = "https://evil.example/"
	r := p.request(t, strings.Replace(body, p.service(), "https://evil.example/", 1))
	r.Header.Set("Authorization", "Bearer "+sign(t, 0, "key-0", c))
	require.Equal(t, 403, serve(open(t, p.config()), &platformtest.Inbox{}, r).Code)
}

func TestOtherTenantsAreRefused(t *testing.T) {
	p := newPlatform(t)
	for tenant, want := range map[string]int{"tenant-1": 200, "tenant-2": 403} {
		c := p.config()
		c.Tenants = []string{tenant}
		require.Equal(t, want, serve(open(t, c), &platformtest.Inbox{}, p.request(t, p.activity(inChannel+`,"type":"message","text":"x"`))).Code)
		require.Equal(t, want, serve(open(t, c), &platformtest.Inbox{}, p.request(t, p.activity(`"type":"message","text":"x","conversation":{"id":"a"}`))).Code)
	}
}

func TestKeysAreCachedAndReadAgainForAnUnknownOne(t *testing.T) {
	p := newPlatform(t)
	c := p.config()
	fake := clock.NewFake(start)
	c.Clock = fake
	a := open(t, c)
	body := p.activity(inChannel + `,"type":"message","text":"x"`)
	post := func(kid string) int {
		r := p.request(t, body)
		r.Header.Set("Authorization", "Bearer "+sign(t, 0, kid, p.claims()))
		return serve(a, &platformtest.Inbox{}, r).Code
	}
	for range 3 {
		require.Equal(t, 200, post("key-0"))
	}
	require.Equal(t, 1, p.fetched)
	p.kid = "key-1"
	require.Equal(t, 401, post("key-1"), "the keys were just read: tokens with unknown keys cause no load")
	require.Equal(t, 1, p.fetched)
	fake.Advance(31 * time.Second)
	require.Equal(t, 200, post("key-1"))
	require.Equal(t, 401, post("key-0"), "the key was withdrawn")
	require.Equal(t, 2, p.fetched)
}

func TestOldKeysAreUsedWhileTheyCannotBeReadAgain(t *testing.T) {
	p := newPlatform(t)
	c := p.config()
	fake := clock.NewFake(start)
	c.Clock = fake
	a := open(t, c)
	claims := p.claims()
	claims["exp"] = start.Add(30 * 24 * time.Hour).Unix()
	post := func() int {
		r := p.request(t, p.activity(inChannel+`,"type":"message","text":"x"`))
		r.Header.Set("Authorization", "Bearer "+sign(t, 0, "key-0", claims))
		return serve(a, &platformtest.Inbox{}, r).Code
	}
	require.Equal(t, 200, post())
	p.down = true
	fake.Advance(4 * 24 * time.Hour)
	require.Equal(t, 200, post())
	fake.Advance(24 * time.Hour)
	require.Equal(t, 503, post())
	p.down = false
	fake.Advance(time.Minute)
	require.Equal(t, 200, post())
	require.Equal(t, 2, p.fetched)
}

func TestKeysThatCannotBeReadMakeTheSenderTryAgain(t *testing.T) {
	p := newPlatform(t)
	body := p.activity(inChannel + `,"type":"message","text":"x"`)
	p.down = true
	require.Equal(t, 503, serve(open(t, p.config()), &platformtest.Inbox{}, p.request(t, body)).Code)
	p.down = false
	p.jwksURI = strings.Replace(p.url, "127.0.0.1", "localhost", 1) + "/keys"
	require.Equal(t, 503, serve(open(t, p.config()), &platformtest.Inbox{}, p.request(t, body)).Code, "keys of another host")
	require.Zero(t, p.fetched)
}

func TestPressedButtonIsADecision(t *testing.T) {
	p := newPlatform(t)
	for name, c := range map[string]struct {
		members string
		approve bool
	}{
		"submit":  {`"type":"message","replyToId":"1","value":{"turntable_gate":{"gate_id":"g1","approve":true}}`, true},
		"deny":    {`"type":"message","text":"","value":{"turntable_gate":{"gate_id":"g1","approve":false}}`, false},
		"execute": {`"type":"invoke","name":"adaptiveCard/action","value":{"action":{"type":"Action.Execute","data":{"turntable_gate":{"gate_id":"g1","approve":true}}}}`, true},
	} {
		to := &platformtest.Inbox{}
		w := serve(open(t, p.config()), to, p.request(t, p.activity(inChannel+","+c.members)))
		require.Equal(t, 200, w.Code)
		require.Equal(t, strings.Contains(c.members, "invoke"), strings.Contains(w.Body.String(), `"statusCode":200`), name)
		require.Len(t, to.Tried, 1)
		require.Equal(t, &adapter.Decision{GateID: "g1", Approve: c.approve}, to.Tried[0].Decision, name)
		require.Equal(t, "1699", to.Tried[0].Origin.Thread)
	}
	for _, value := range []string{`{"turntable_gate":{"gate_id":"g1"}}`, `{"turntable_gate":{"approve":true}}`, `{"x":1}`, `"x"`, `null`} {
		to := &platformtest.Inbox{}
		require.Equal(t, 200, serve(open(t, p.config()), to, p.request(t, p.activity(inChannel+`,"type":"message","text":"x","value":`+value))).Code)
		require.Nil(t, to.Tried[0].Decision, value)
	}
}

func TestHostileBodiesAreRefused(t *testing.T) {
	p := newPlatform(t)
	a := open(t, p.config())
	body := p.activity(inChannel + `,"type":"message","text":"x"`)
	for _, bad := range []string{
		``, `[]`, `{"type":1}`, body + body, strings.Replace(body, `"id":"1700"`, `"id":"1700","id":"1701"`, 1),
		strings.Replace(body, `"serviceUrl"`, `"serviceUrl":"https://evil.example","serviceUrl"`, 1),
		strings.Replace(body, "19:abc", strings.Repeat("x", 600), 1), strings.Replace(body, `"x"`, "\"\xff\"", 1),
	} {
		to := &platformtest.Inbox{}
		require.Equal(t, 400, serve(a, to, p.request(t, bad)).Code, bad)
		require.Empty(t, to.Tried)
	}
	require.Equal(t, 413, serve(a, &platformtest.Inbox{}, p.request(t, strings.Repeat(" ", 2<<20))).Code)
	r := p.request(t, body)
	r.Method = http.MethodGet
	require.Equal(t, 405, serve(a, &platformtest.Inbox{}, r).Code)
	r = p.request(t, body)
	r.Header.Set("Content-Type", "text/plain")
	require.Equal(t, 415, serve(a, &platformtest.Inbox{}, r).Code)
}

func TestRepeatsAreTheSameEventAndFailuresAreSentAgain(t *testing.T) {
	p, to := newPlatform(t), &platformtest.Inbox{Err: errors.New("no broker")}
	a := open(t, p.config())
	body := p.activity(inChannel + `,"type":"message","text":"x"`)
	require.Equal(t, 503, serve(a, to, p.request(t, body)).Code)
	to.Err = nil
	require.Equal(t, 200, serve(a, to, p.request(t, body)).Code)
	require.Equal(t, to.Tried[0], to.Tried[1])
}
