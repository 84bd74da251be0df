package kafka_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/kafka"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "hunter2+/=&"

// serveToken starts a token endpoint on the loopback interface.
func serveToken(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL + "/token"
}

func newEndpoint(t *testing.T, c kafka.TokenEndpointConfig) *kafka.TokenEndpoint {
	t.Helper()
	if c.ID == "" {
		c.ID, c.Secret = "turntable", secret
	}
	e, err := kafka.NewTokenEndpoint(c)
	require.NoError(t, err)
	return e
}

func writeBody(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, body)
}

// unsigned returns an unsigned token with claims.
func unsigned(claims string) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"none"}`) + "." + part(claims) + "."
}

func TestTokenIsFetchedByClientCredentials(t *testing.T) {
	var request *http.Request
	var form map[string][]string
	url := serveToken(t, func(w http.ResponseWriter, r *http.Request) {
		request = r
		_ = r.ParseForm()
		form = r.PostForm
		writeBody(w, `{"access_token":"abc","token_type":"bearer","expires_in":60}`)
	})
	token, err := newEndpoint(t, kafka.TokenEndpointConfig{URL: url, Scope: "kafka read"}).Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "abc", token)
	require.Equal(t, http.MethodPost, request.Method)
	require.Equal(t, map[string][]string{"grant_type": {"client_credentials"}, "scope": {"kafka read"}}, form)
	user, password, ok := request.BasicAuth()
	require.True(t, ok)
	require.Equal(t, []string{"turntable", secret}, []string{user, password}, "not encoded, as in Kafka's clients")

	_, err = newEndpoint(t, kafka.TokenEndpointConfig{URL: url, Encode: true}).Token(t.Context())
	require.NoError(t, err)
	_, password, _ = request.BasicAuth()
	require.Equal(t, "hunter2%2B%2F%3D%26", password)
	require.NotContains(t, form, "scope")
}

func TestTokenIsSharedUntilShortlyBeforeItExpires(t *testing.T) {
	for name, answer := range map[string]func(n int64, now time.Time) string{
		"expires_in": func(n int64, _ time.Time) string { return fmt.Sprintf(`{"access_token":"t%d","expires_in":1000}`, n) },
		"claim": func(n int64, now time.Time) string {
			return fmt.Sprintf(`{"access_token":%q}`, unsigned(fmt.Sprintf(`{"n":%d,"exp":%d}`, n, now.Add(1000*time.Second).Unix())))
		},
	} {
		var fetched, now atomic.Int64
		now.Store(time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC).Unix())
		clock := func() time.Time { return time.Unix(now.Load(), 0) }
		url := serveToken(t, func(w http.ResponseWriter, _ *http.Request) { writeBody(w, answer(fetched.Add(1), clock())) })
		e := newEndpoint(t, kafka.TokenEndpointConfig{URL: url, Now: clock})
		var all sync.Map
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				token, err := e.Token(t.Context())
				all.Store(fmt.Sprint(token, err), true)
			})
		}
		callers.Wait()
		tokens := 0
		all.Range(func(any, any) bool { tokens++; return true })
		require.Equal(t, 1, tokens, name)
		require.EqualValues(t, 1, fetched.Load(), name)
		now.Add(700) // of 800
		_, err := e.Token(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, fetched.Load(), name)
		now.Add(150)
		_, err = e.Token(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, fetched.Load(), name)
	}
}

func TestFailuresNameTheReasonAndNoSecret(t *testing.T) {
	elsewhere := ""
	for want, answer := range map[string]http.HandlerFunc{
		"status 401 (invalid_client)": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"%s"}`, r.Header.Get("Authorization"))
		},
		"status 500": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, r.Header.Get("Authorization"))
		},
		"status 400": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"%s"}`, r.Header.Get("Authorization"))
		},
		"contains no access_token": func(w http.ResponseWriter, r *http.Request) {
			writeBody(w, r.Header.Get("Authorization"))
		},
		"no access_token":         func(w http.ResponseWriter, _ *http.Request) { writeBody(w, `{}`) },
		"longer than 65536 bytes": func(w http.ResponseWriter, _ *http.Request) { writeBody(w, strings.Repeat(" ", 70_000)) },
		"blanks or control":       func(w http.ResponseWriter, _ *http.Request) { writeBody(w, `{"access_token":"a\u0001hunter2"}`) },
		"status 307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		},
	} {
		posted := false
		elsewhere = serveToken(t, func(http.ResponseWriter, *http.Request) { posted = true })
		_, err := newEndpoint(t, kafka.TokenEndpointConfig{URL: serveToken(t, answer)}).Token(t.Context())
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), base64.StdEncoding.EncodeToString([]byte("turntable:"+secret)))
		require.False(t, posted, "a redirect is not followed")
	}
}

func TestUnreachableEndpointIsNamedByItsAddressOnly(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.Listener.Addr().String()
	server.Close()
	_, err := newEndpoint(t, kafka.TokenEndpointConfig{URL: "http://" + address + "/hunter2?key=hunter2"}).Token(t.Context())
	require.ErrorContains(t, err, address)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestSilentEndpointIsGivenUp(t *testing.T) {
	over := make(chan struct{})
	url := serveToken(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	e := newEndpoint(t, kafka.TokenEndpointConfig{URL: url, MaxFetch: 50 * time.Millisecond})
	_, err := e.Token(context.Background())
	require.ErrorContains(t, err, "no answer within 50ms")
	again, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Token(again)
	require.Error(t, err)
}

func TestExpiredCallerSaysNothingAboutTheEndpoint(t *testing.T) {
	var fail atomic.Bool
	arrived, over := make(chan struct{}, 1), make(chan struct{})
	fail.Store(true)
	url := serveToken(t, func(w http.ResponseWriter, _ *http.Request) {
		if fail.Load() {
			arrived <- struct{}{}
			<-over
			return
		}
		writeBody(w, `{"access_token":"abc"}`)
	})
	defer close(over)
	e := newEndpoint(t, kafka.TokenEndpointConfig{URL: url, MaxFetch: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := e.Token(ctx)
	require.ErrorIs(t, err, context.Canceled)
	fail.Store(false)
	token, err := e.Token(t.Context())
	require.NoError(t, err, "the next caller does not get the failure")
	require.Equal(t, "abc", token)
}

func TestCertificateOfTheEndpointIsVerified(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeBody(w, `{"access_token":"abc"}`)
	}))
	defer server.Close()
	server.Config.ErrorLog = nil
	_, err := newEndpoint(t, kafka.TokenEndpointConfig{URL: server.URL}).Token(t.Context())
	require.ErrorContains(t, err, "certificate")
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	token, err := newEndpoint(t, kafka.TokenEndpointConfig{URL: server.URL, Roots: roots}).Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "abc", token)
}

func TestEndpointsMustBeEncryptedUnlessTheyAreLocal(t *testing.T) {
	for _, url := range []string{
		"https://idp.example/token", "http://127.0.0.1:1/token", "http://localhost/token", "http://[::1]:80/token",
	} {
		require.NoError(t, kafka.CheckTokenURL(url), url)
	}
	for _, url := range []string{
		"", "hunter2", "http://idp.example/hunter2", "http://127.0.0.1.hunter2.example/", "ftp://idp.example/hunter2", "https://",
		"https://ann:hunter2@idp.example/token", "https:hunter2", "https://idp.example/token#hunter2", "://hunter2",
		"https://idp.example/%zzhunter2",
	} {
		err := kafka.CheckTokenURL(url)
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
