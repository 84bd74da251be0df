package jwt_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/auth/jwt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer   = "https://id.example"
	audience = "turntable"
)

var (
	noon       = time.UnixMilli(1_790_000_000_120)
	p256, _    = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _    = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rsa2048, _ = rsa.GenerateKey(rand.Reader, 2048)
	_, ed, _   = ed25519.GenerateKey(rand.Reader)
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk is a public key as a JWK, with more members.
func jwk(public crypto.PublicKey, members string) string {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		point, _ := k.Bytes()
		half := len(point) / 2
		return fmt.Sprintf(`{"kty":"EC","crv":"%s","x":"%s","y":"%s",%s}`, k.Params().Name, b64(point[1:1+half]), b64(point[1+half:]), members)
	case *rsa.PublicKey:
		return fmt.Sprintf(`{"kty":"RSA","n":"%s","e":"AQAB",%s}`, b64(k.N.Bytes()), members)
	case ed25519.PublicKey:
		return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":"%s",%s}`, b64(k), members)
	}
	panic(public)
}

func jwks(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

var (
	ecKey = jwk(p256.Public(), `"kid":"ec","alg":"ES256","use":"sig"`)
	all   = jwks(ecKey, jwk(rsa2048.Public(), `"kid":"rsa"`), jwk(ed.Public(), `"kid":"ed"`), jwk(p384.Public(), `"kid":"p384"`),
		`{"kty":"oct","k":"c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0","kid":"oct"}`, `{"kty":"new","kid":"new"}`,
		jwk(rsa2048.Public(), `"kid":"enc","use":"enc"`))
)

func claims(change gojwt.MapClaims) gojwt.MapClaims {
	c := gojwt.MapClaims{
		"iss": issuer, "aud": []string{"other", audience}, "sub": "mira", "exp": noon.Add(time.Hour).Unix(),
		"nbf": noon.Add(-time.Minute).Unix(), "iat": noon.Add(-time.Minute).Unix(),
	}
	maps.Copy(c, change)
	for name, value := range c {
		if value == nil {
			delete(c, name)
		}
	}
	return c
}

func signed(t testing.TB, m gojwt.SigningMethod, key any, kid string, c gojwt.MapClaims, header ...string) string {
	t.Helper()
	token := gojwt.NewWithClaims(m, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	for i := 0; i < len(header); i += 2 {
		token.Header[header[i]] = header[i+1]
	}
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

// raw is a token of these texts, which need not be what an encoder writes.
func raw(t testing.TB, header, claims string) string {
	t.Helper()
	text := b64([]byte(header)) + "." + b64([]byte(claims))
	signature, err := gojwt.SigningMethodES256.Sign(text, p256)
	require.NoError(t, err)
	return text + "." + b64(signature)
}

func es256(t testing.TB, change gojwt.MapClaims) string {
	return signed(t, gojwt.SigningMethodES256, p256, "ec", claims(change))
}

func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func newTokens(t testing.TB, source string, c jwt.Config) *jwt.Tokens {
	t.Helper()
	if c.Clock == nil {
		c.Clock = clock.NewFake(noon)
	}
	tokens, err := jwt.New(source, issuer, audience, c)
	require.NoError(t, err)
	return tokens
}

func try(tokens *jwt.Tokens, token string) (auth.Caller, error) {
	r := httptest.NewRequest(http.MethodPost, "/invoke", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return tokens.Authenticate(r)
}

func TestTokenAuthenticatesItsUser(t *testing.T) {
	c, err := try(newTokens(t, file(t, all), jwt.Config{}), es256(t, nil))
	require.NoError(t, err)
	require.Equal(t, "mira", c.UserID)
	require.Equal(t, "jwt:mira", c.Name())
	require.True(t, c.Allowed("mira:1"))
	require.False(t, c.Allowed("otto:1"))
	require.Equal(t, auth.Read|auth.Write|auth.Answer, c.Rights)
	require.Equal(t, noon.Add(time.Hour).Unix()+30, c.Expires.Unix(), "exp and the leeway")
}

func TestKeysAreUsedForTheirAlgorithmsOnly(t *testing.T) {
	every := []string{"RS256", "PS256", "ES256", "ES384", "EdDSA"}
	for name, c := range map[string]struct {
		token      string
		algorithms []string
		ok         bool
	}{
		"ES256":                           {es256(t, nil), nil, true},
		"RS256":                           {signed(t, gojwt.SigningMethodRS256, rsa2048, "rsa", claims(nil)), nil, true},
		"EdDSA":                           {signed(t, gojwt.SigningMethodEdDSA, ed, "ed", claims(nil)), nil, true},
		"only key by alg":                 {signed(t, gojwt.SigningMethodEdDSA, ed, "", claims(nil)), nil, true},
		"not allowed":                     {signed(t, gojwt.SigningMethodPS256, rsa2048, "rsa", claims(nil)), nil, false},
		"allowed":                         {signed(t, gojwt.SigningMethodPS256, rsa2048, "rsa", claims(nil)), every, true},
		"ES384":                           {signed(t, gojwt.SigningMethodES384, p384, "p384", claims(nil)), every, true},
		"none":                            {signed(t, gojwt.SigningMethodNone, gojwt.UnsafeAllowNoneSignatureType, "ec", claims(nil)), nil, false},
		"public key as the shared secret": {signed(t, gojwt.SigningMethodHS256, rsa2048.N.Bytes(), "rsa", claims(nil)), nil, false},
		"symmetric key":                   {signed(t, gojwt.SigningMethodHS256, []byte("secret secret secret secret"), "oct", claims(nil)), nil, false},
		"another key":                     {signed(t, gojwt.SigningMethodRS256, rsa2048, "ec", claims(nil)), nil, false},
		"encryption key":                  {signed(t, gojwt.SigningMethodRS256, rsa2048, "enc", claims(nil)), nil, false},
		"unknown key":                     {signed(t, gojwt.SigningMethodES256, p256, "old", claims(nil)), nil, false},
		"forged":                          {es256(t, nil)[:len(es256(t, nil))-4] + "AAAA", nil, false},
		"crit":                            {signed(t, gojwt.SigningMethodES256, p256, "ec", claims(nil), "crit", "b64"), nil, false},
		"not a token":                     {"a.b.c", nil, false},
	} {
		_, err := try(newTokens(t, file(t, all), jwt.Config{Algorithms: c.algorithms}), c.token)
		if c.ok {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, auth.ErrRejected, name)
		require.NotContains(t, err.Error(), c.token)
	}
	// With two keys that fit, a token must name one.
	two := jwks(jwk(ed.Public(), `"kid":"a"`), jwk(ed.Public(), `"kid":"b"`))
	_, err := try(newTokens(t, file(t, two), jwt.Config{}), signed(t, gojwt.SigningMethodEdDSA, ed, "", claims(nil)))
	require.ErrorIs(t, err, auth.ErrRejected)
}

func TestClaimsAreChecked(t *testing.T) {
	tokens := newTokens(t, file(t, all), jwt.Config{})
	for name, change := range map[string]gojwt.MapClaims{
		"no exp":           {"exp": nil},
		"expired":          {"exp": noon.Add(-30 * time.Second).Unix()},
		"exp as text":      {"exp": "9999999999"},
		"not yet valid":    {"nbf": noon.Add(time.Minute).Unix()},
		"from the future":  {"iat": noon.Add(time.Minute).Unix()},
		"no issuer":        {"iss": nil},
		"another issuer":   {"iss": issuer + "/"},
		"no audience":      {"aud": nil},
		"another audience": {"aud": "turntables"},
		"no user":          {"sub": nil},
		"blank user":       {"sub": " "},
		"number as user":   {"sub": 7},
		"user with NUL":    {"sub": "mi\x00ra"},
		"long user":        {"sub": strings.Repeat("u", 257)},
	} {
		_, err := try(tokens, es256(t, change))
		require.ErrorIs(t, err, auth.ErrRejected, name)
	}
	_, err := try(tokens, es256(t, gojwt.MapClaims{"exp": noon.Add(-29 * time.Second).Unix(), "nbf": nil, "iat": nil}))
	require.NoError(t, err, "within the leeway")
	const once = `"iss":"https://id.example","aud":"turntable","sub":"mira","exp":9999999999`
	const header = `"alg":"ES256","kid":"ec"`
	_, err = try(tokens, raw(t, `{`+header+`}`, `{`+once+`}`))
	require.NoError(t, err)
	for name, token := range map[string]string{
		"user twice":          raw(t, `{`+header+`}`, `{`+once+`,"sub":"ops"}`),
		"same user twice":     raw(t, `{`+header+`}`, `{`+once+`,"sub":"mira"}`),
		"escaped name":        raw(t, `{`+header+`}`, `{`+once+`,"\u0073ub":"ops"}`),
		"end twice":           raw(t, `{`+header+`}`, `{"exp":1,`+once+`}`),
		"claim inside twice":  raw(t, `{`+header+`}`, `{`+once+`,"realm":{"a":1,"a":2}}`),
		"key twice":           raw(t, `{"kid":"p384",`+header+`}`, `{`+once+`}`),
		"algorithm twice":     raw(t, `{"alg":"none",`+header+`}`, `{`+once+`}`),
		"not UTF-8 in a name": raw(t, `{`+header+`}`, "{"+once+",\"s\xffub\":\"ops\"}"),
	} {
		_, err := try(tokens, token)
		require.ErrorIs(t, err, auth.ErrRejected, name)
	}
	for _, other := range []string{"", "tt_abcd_0", "opaque", "a.b", "a.b.c.d"} {
		_, err := try(tokens, other)
		require.ErrorIs(t, err, auth.ErrNoCredential, other)
	}
}

func TestClaimsGiveSessionsAndRights(t *testing.T) {
	rooms, err := auth.ParseSessions("room-*")
	require.NoError(t, err)
	tokens := newTokens(t, file(t, all), jwt.Config{UserClaim: "email", Sessions: rooms, Rights: auth.Read})
	c, err := try(tokens, es256(t, gojwt.MapClaims{"email": "mira@id.example"}))
	require.NoError(t, err)
	require.Equal(t, "mira@id.example", c.UserID)
	require.True(t, c.Allowed("room-1"))
	require.Equal(t, auth.Read, c.Rights)

	tokens = newTokens(t, file(t, all), jwt.Config{SessionsClaim: "rooms", RightsClaim: "scope"})
	c, err = try(tokens, es256(t, gojwt.MapClaims{"rooms": []string{"{user}/*", "lobby"}, "scope": "openid read control"}))
	require.NoError(t, err)
	require.True(t, c.Allowed("mira/1") && c.Allowed("lobby") && !c.Allowed("mira:1"))
	require.Equal(t, auth.Read|auth.Control, c.Rights)
	for _, bad := range []gojwt.MapClaims{
		{"scope": "read"},
		{"rooms": "*"},
		{"rooms": []any{}, "scope": "read"},
		{"rooms": []any{"*", 7}, "scope": "read"},
		{"rooms": "*{user}", "scope": "read"},
		{"rooms": "*", "scope": "openid"},
		{"rooms": "*", "scope": 7},
	} {
		_, err = try(tokens, es256(t, bad))
		require.ErrorIs(t, err, auth.ErrRejected, "%v", bad)
	}
}

func TestChangedFileOfKeysIsReadAgain(t *testing.T) {
	now, path := clock.NewFake(noon), file(t, jwks(jwk(ed.Public(), `"kid":"ed"`)))
	tokens := newTokens(t, path, jwt.Config{Clock: now})
	_, err := try(tokens, es256(t, nil))
	require.Error(t, err)
	for _, content := range []string{"broken", all} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		now.Advance(time.Second)
		_, err = try(tokens, es256(t, nil))
		require.Equal(t, content == all, err == nil)
	}
}

// provider is an identity provider's JWKS endpoint.
type provider struct {
	*httptest.Server
	requests atomic.Int64
	answer   atomic.Pointer[http.HandlerFunc]
}

func newProvider(t *testing.T, content string) *provider {
	t.Helper()
	p := &provider{}
	p.serve(content)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		(*p.answer.Load())(w, r)
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		p.Close()
	})
	return p
}

func (p *provider) serve(content string) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(content)) })
	p.answer.Store(&h)
}

func (p *provider) fail(h http.HandlerFunc) { p.answer.Store(&h) }

func TestKeysOfAURLAreRefreshedWithinBounds(t *testing.T) {
	p, now := newProvider(t, all), clock.NewFake(noon)
	core, logs := observer.New(zap.InfoLevel)
	tokens := newTokens(t, p.URL+"?key=s3cret", jwt.Config{Clock: now, Logger: zap.New(core)})
	require.Zero(t, p.requests.Load(), "New does not need the provider")
	day := func() string { return es256(t, gojwt.MapClaims{"exp": now.Now().Add(time.Hour).Unix()}) }
	for range 3 {
		_, err := try(tokens, day())
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, p.requests.Load())

	// Unknown keys cause one request in 30 seconds.
	forged := signed(t, gojwt.SigningMethodES256, p256, "unknown", claims(nil))
	for range 5 {
		_, err := try(tokens, forged)
		require.ErrorIs(t, err, auth.ErrRejected)
	}
	require.EqualValues(t, 1, p.requests.Load())
	now.Advance(30 * time.Second)
	for range 5 {
		_, _ = try(tokens, forged)
	}
	require.EqualValues(t, 2, p.requests.Load())

	// The provider fails: the keys are used for a day after the last success.
	huge := strings.Repeat(" ", 2<<20)
	for _, broken := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(all + huge)) },
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		p.fail(broken)
		now.Advance(2 * time.Hour)
		_, err := try(tokens, day())
		require.NoError(t, err)
	}
	require.EqualValues(t, 7, p.requests.Load(), "redirects are not followed")
	require.Equal(t, 5, logs.FilterLevelExact(zap.ErrorLevel).Len())
	for _, e := range logs.All() {
		require.NotContains(t, fmt.Sprint(e.ContextMap()), "s3cret")
	}
	now.Advance(14 * time.Hour)
	_, err := try(tokens, day())
	require.ErrorIs(t, err, auth.ErrRejected)

	p.serve(jwks(ecKey))
	now.Advance(30 * time.Second)
	_, err = try(tokens, day())
	require.NoError(t, err)
}

func TestArgumentsAreChecked(t *testing.T) {
	good := file(t, all)
	for name, c := range map[string][]string{
		"no JWKS": {"", issuer, audience}, "no issuer": {good, "", audience}, "no audience": {good, issuer, " "},
		"plain HTTP":  {"http://id.example/jwks", issuer, audience},
		"with a user": {"https://u:s3cret@id.example/jwks", issuer, audience},
		"no host":     {"https:///jwks", issuer, audience},
		"file scheme": {"file:///jwks", issuer, audience},
		"look-alike":  {"http://localhost.id.example/jwks", issuer, audience},
	} {
		_, err := jwt.New(c[0], c[1], c[2], jwt.Config{})
		require.ErrorIs(t, err, jwt.ErrConfig, name)
		require.NotContains(t, err.Error(), "s3cret")
	}
	for name, c := range map[string]jwt.Config{
		"none": {Algorithms: []string{"none"}}, "HS256": {Algorithms: []string{"RS256", "HS256"}}, "leeway": {Leeway: time.Hour},
		"negative leeway": {Leeway: -1},
	} {
		_, err := jwt.New(good, issuer, audience, c)
		require.ErrorIs(t, err, jwt.ErrConfig, name)
	}
	for _, ok := range []string{"https://id.example/jwks", "http://127.0.0.1/jwks", "http://[::1]:1/jwks", "http://localhost/jwks"} {
		_, err := jwt.New(ok, issuer, audience, jwt.Config{})
		require.NoError(t, err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err == nil {
		_, err = jwt.New(file(t, jwks(jwk(small.Public(), `"kid":"small"`))), issuer, audience, jwt.Config{})
		require.ErrorIs(t, err, jwt.ErrKeys)
	}
	for _, content := range []string{"", "{}", "[]", `{"keys":[7]}`, `{"keys":{}}`} {
		_, err := jwt.New(file(t, content), issuer, audience, jwt.Config{})
		require.ErrorIs(t, err, jwt.ErrKeys, content)
	}
}
