package entrance

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

func TestAddressIdentifiesAClient(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[2001:db8:1:2::9]:7": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "@": "@", "": "", "name:80": "name",
	} {
		require.Equal(t, want, Address(remote), remote)
	}
}

func TestSessionIDsHaveNoControlOrFormattingCharacters(t *testing.T) {
	for _, id := range []string{"s", "größe 7", "日本-✓", strings.Repeat("s", 1024)} {
		require.NoError(t, CheckSession(id), id)
	}
	for _, id := range []string{
		"", "a\x00", "a\n", "a\r", "a\t", "a\x1b[2J", "a\x7f", "a\u0085", "a\u00ad", "a\u061c", "a\u200b", "a\u200e", "a\u202a",
		"a\u202e", "a\u2066", "a\u2069", "a\u2028", "a\u2029", "\ufeffa", "\xff", "__offset", strings.Repeat("s", 1025),
	} {
		require.Error(t, CheckSession(id), "%q", id)
	}
}

func TestHeadersAreLimited(t *testing.T) {
	with := func(name, value string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set(name, value)
		return r
	}
	require.Nil(t, checkHeaders(with("Accept", strings.Repeat("x", maxHeader))))
	require.Equal(t, 431, checkHeaders(with("Accept", strings.Repeat("x", maxHeader+1))).Status)
	require.Nil(t, checkHeaders(with("Authorization", strings.Repeat("x", maxCredential))))
	require.Equal(t, 431, checkHeaders(with("Cookie", strings.Repeat("x", maxCredential+1))).Status)

	many := httptest.NewRequest(http.MethodPost, "/", nil)
	for range maxValues {
		many.Header.Add("A", "")
	}
	require.Nil(t, checkHeaders(many))
	many.Header.Add("B", "")
	require.Equal(t, 431, checkHeaders(many).Status)

	large := httptest.NewRequest(http.MethodPost, "/", nil)
	for _, name := range []string{"A", "B", "C", "D", "E", "F", "G"} {
		large.Header.Set(name, strings.Repeat("x", maxHeader))
	}
	require.Equal(t, 431, checkHeaders(large).Status)
	require.Equal(t, 414, checkHeaders(httptest.NewRequest(http.MethodGet, "/?"+strings.Repeat("x", maxTarget), nil)).Status)
}

func TestContentTypesThatAreJSON(t *testing.T) {
	for _, kind := range []string{"application/json", "Application/JSON; charset=utf-8", "application/ld+json"} {
		require.True(t, IsJSON(kind), kind)
	}
	for _, kind := range []string{"", "text/plain", "application/jsonx", "text/json+json", "application/json, text/plain", ";"} {
		require.False(t, IsJSON(kind), kind)
	}
}

func TestRequestIDIsPrintable(t *testing.T) {
	for value, want := range map[string]string{"edge-7": "edge-7", "a b": "", "\u202e": "", strings.Repeat("x", 129): ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Request-Id", value)
		require.Equal(t, want, requestID(r), value)
	}
}

func TestUnusableConfigurationOfADoorIsNamed(t *testing.T) {
	for name, d := range map[string]auth.Door{
		"BodyLimit is -1": {BodyLimit: -1}, "Concurrency is -1": {Concurrency: -1}, "Hosts is empty": {Hosts: []string{}},
		`Hosts has ""`: {Hosts: []string{""}}, `Hosts has "Desk:80"`: {Hosts: []string{"desk", "Desk:80"}},
		"Origins has an empty one": {Origins: []string{"*", ""}}, `Origins has "no origin"`: {Origins: []string{"no origin"}},
		"Keys is -1": {Limits: auth.Limits{Keys: -1}}, "CallerBodyBytes is 9": {BodyLimit: 9, Limits: auth.Limits{CallerBodyBytes: 9}},
	} {
		var check bounds.Check
		Complete(&check, &d)
		New(&check, Config{Door: d})
		require.ErrorContains(t, check.Err(errors.New("bad")), "bad: ")
		require.ErrorContains(t, check.Err(errors.New("bad")), name)
	}
}

func TestScriptsOfTrustedPagesMaySendTheHeadersOfTheDoorAndOfItsConfiguration(t *testing.T) {
	e := authenticated(t, clock.NewFake(noon), func(c *Config) {
		c.Origins, c.Door.Headers = []string{"https://app.example"}, []string{"Authorization"}
		c.CORS = CORS{Methods: "POST", Headers: []string{"Prefer"}, Exposed: "Location"}
	})
	answer := func(origin string) http.Header {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodOptions, "/", nil)
		r.Header.Set("Origin", origin)
		v, _ := e.Open(w, r)
		v.Close()
		return w.Header()
	}
	require.Equal(t, http.Header{"Vary": {"Origin"}}, answer("https://other.example"))
	require.Equal(t, http.Header{
		"Access-Control-Allow-Credentials": {"true"}, "Access-Control-Allow-Headers": {"Content-Type, Prefer, Authorization"},
		"Access-Control-Allow-Methods": {"POST"}, "Access-Control-Allow-Origin": {"https://app.example"},
		"Access-Control-Expose-Headers": {"Location"}, "Vary": {"Origin"},
	}, answer("https://app.example"))
}
