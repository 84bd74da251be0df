package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/?access_token=in-the-url", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestBearerIsReadFromItsHeaders(t *testing.T) {
	const socket = "Sec-WebSocket-Protocol"
	for name, c := range map[string]struct {
		headers []string
		want    string
		err     error
	}{
		"header":                    {[]string{"Authorization", "Bearer a.b-c_~+/="}, "a.b-c_~+/=", nil},
		"scheme in any case":        {[]string{"Authorization", "bEARER  abc "}, "abc", nil},
		"none":                      {nil, "", auth.ErrNoCredential},
		"another scheme":            {[]string{"Authorization", "Basic abc"}, "", auth.ErrNoCredential},
		"empty":                     {[]string{"Authorization", "Bearer "}, "", auth.ErrRejected},
		"scheme only":               {[]string{"Authorization", "Bearer"}, "", auth.ErrRejected},
		"two words":                 {[]string{"Authorization", "Bearer a b"}, "", auth.ErrRejected},
		"a list":                    {[]string{"Authorization", "Bearer a,b"}, "", auth.ErrRejected},
		"two headers":               {[]string{"Authorization", "Bearer a", "Authorization", "Bearer b"}, "", auth.ErrRejected},
		"too long":                  {[]string{"Authorization", "Bearer " + strings.Repeat("a", 8<<10+1)}, "", auth.ErrRejected},
		"longest":                   {[]string{"Authorization", "Bearer " + strings.Repeat("a", 8<<10)}, strings.Repeat("a", 8<<10), nil},
		"handshake":                 {[]string{"Upgrade", "websocket", socket, "turntable, turntable.bearer.abc"}, "abc", nil},
		"handshake, two headers":    {[]string{"Upgrade", "WebSocket", socket, "turntable", socket, "turntable.bearer.abc"}, "abc", nil},
		"handshake, other protocol": {[]string{"Upgrade", "websocket", socket, "chat"}, "", auth.ErrNoCredential},
		"handshake, empty":          {[]string{"Upgrade", "websocket", socket, "turntable.bearer."}, "", auth.ErrRejected},
		"handshake, both":           {[]string{"Upgrade", "websocket", socket, "turntable.bearer.a", "Authorization", "Bearer b"}, "", auth.ErrRejected},
		"handshake, commas":         {[]string{"Upgrade", "websocket", socket, strings.Repeat(",", 1<<20)}, "", auth.ErrRejected},
		"no handshake":              {[]string{socket, "turntable.bearer.abc"}, "", auth.ErrNoCredential},
	} {
		got, err := auth.Bearer(request(c.headers...))
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, c.want, got, name)
	}
}

func FuzzBearer(f *testing.F) {
	f.Add("Bearer abc", "turntable.bearer.abc", true)
	f.Add("bearer a b", ",,turntable.bearer.", false)
	f.Fuzz(func(t *testing.T, authorization, protocol string, upgrade bool) {
		r := request("Authorization", authorization, "Sec-WebSocket-Protocol", protocol)
		if upgrade {
			r.Header.Set("Upgrade", "websocket")
		}
		token, err := auth.Bearer(r)
		if err != nil {
			require.Empty(t, token)
			require.True(t, errors.Is(err, auth.ErrRejected) != errors.Is(err, auth.ErrNoCredential))
			return
		}
		require.NotEmpty(t, token)
		require.LessOrEqual(t, len(token), 8<<10)
		require.True(t, strings.HasSuffix(strings.TrimRight(authorization, " "), token) || upgrade && strings.Contains(protocol, token))
		require.NotContains(t, token, " ")
	})
}

func TestFirstFunctionThatFindsACredentialDecides(t *testing.T) {
	asked := ""
	kind := func(name string, err error) auth.Authenticate {
		return func(*http.Request) (auth.Caller, error) {
			asked += name
			return auth.Caller{UserID: name}, err
		}
	}
	none, bad := kind("n", auth.ErrNoCredential), kind("b", auth.ErrRejected)
	broken, good := kind("x", errors.New("the key server is unavailable")), kind("g", nil)
	for _, c := range []struct {
		kinds []auth.Authenticate
		asked string
		ok    bool
	}{
		{[]auth.Authenticate{none, good, bad}, "ng", true},
		{[]auth.Authenticate{bad, good}, "b", false},
		{[]auth.Authenticate{broken, good}, "x", false},
		{[]auth.Authenticate{none, none}, "nn", false},
		{nil, "", false},
	} {
		asked = ""
		caller, err := auth.First(c.kinds...)(request())
		require.Equal(t, c.asked, asked)
		require.Equal(t, c.ok, err == nil)
		require.Equal(t, c.ok, caller.UserID == "g")
	}
	_, err := auth.First()(request())
	require.ErrorIs(t, err, auth.ErrNoCredential)
}
