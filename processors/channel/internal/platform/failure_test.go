package platform_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestStatusesThatCanPassAreRetriedAndOthersAreFinal(t *testing.T) {
	for code, final := range map[int]bool{
		301: true, 307: true, 400: true, 401: false, 403: true, 404: true, 408: false, 410: true, 413: true, 425: false, 429: false,
		500: false, 502: false, 503: false, 504: false,
	} {
		f := platform.StatusFailure(code, http.Header{}, now)
		require.NotNil(t, f, code)
		require.Equal(t, final, f.Final, code)
		require.Equal(t, code, f.Status)
	}
	for _, code := range []int{200, 201, 202, 204} {
		require.Nil(t, platform.StatusFailure(code, http.Header{}, now))
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	f := platform.StatusFailure(429, http.Header{"Retry-After": {"17"}}, now)
	require.Equal(t, 17*time.Second, f.RetryAfter)
	require.False(t, f.Final)
	require.Equal(t, "status 429", f.Reason)
}

func TestRetryAfterForms(t *testing.T) {
	week := 7 * 24 * time.Hour
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "3": 3 * time.Second, " 3 ": 3 * time.Second, "1.2": 2 * time.Second, "1.0": time.Second, "-1": 0, "soon": 0,
		"99999999999999999999": week, "604801": week, ".": 0,
		now.Add(time.Minute).Format(http.TimeFormat):  time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat): 0,
		now.Add(3 * week).Format(http.TimeFormat):     week,
	} {
		require.Equal(t, want, platform.RetryAfter(value, now), value)
	}
}

func TestNetworkErrorsHaveReasonsWithoutTheAddress(t *testing.T) {
	client := platform.Client(0)
	defer client.CloseIdleConnections()
	get := func(ctx context.Context, url string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		require.NoError(t, err)
		response, err := client.Do(r)
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		return err
	}

	closed := httptest.NewServer(nil)
	closed.Close()
	require.Equal(t, platform.ReasonNoConnection, platform.Reason(get(t.Context(), closed.URL)))

	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}))
	defer cut.Close()
	require.Equal(t, platform.ReasonConnectionLost, platform.Reason(get(t.Context(), cut.URL)))

	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	defer secure.Close()
	require.Equal(t, platform.ReasonNoTLS, platform.Reason(get(t.Context(), secure.URL)), "unknown authority")
	require.Equal(t, platform.ReasonNoTLS, platform.Reason(get(t.Context(), strings.Replace(cut.URL, "http:", "https:", 1)+"/x")), "no TLS")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, platform.ReasonInterrupted, platform.Reason(get(ctx, cut.URL)))
	expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	require.Equal(t, platform.ReasonTimeout, platform.Reason(get(expired, cut.URL)))
	require.Equal(t, platform.ReasonNoName, platform.Reason(&net.DNSError{Err: "no such host", Name: "secret.example"}))
	require.Equal(t, platform.ReasonConnectionLost, platform.Failure(errors.New("https://token@host")).Reason)
}

func TestClientFollowsNoRedirect(t *testing.T) {
	followed := make(chan struct{}, 1)
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed <- struct{}{} }))
	defer target.Close()
	server := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	client := platform.Client(0)
	defer client.CloseIdleConnections()
	response, err := client.Post(server.URL, "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusTemporaryRedirect, response.StatusCode)
	require.True(t, platform.StatusFailure(response.StatusCode, response.Header, now).Final)
	require.Empty(t, followed)
}

func TestResponsesAreBounded(t *testing.T) {
	size := int(platform.MaxResponse)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	}))
	defer server.Close()
	client := platform.Client(0)
	defer client.CloseIdleConnections()
	read := func() (int, error) {
		response, err := client.Get(server.URL)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return len(body), err
	}
	n, err := read()
	require.NoError(t, err)
	require.Equal(t, size, n)
	size++
	n, err = read()
	require.ErrorAs(t, err, new(*http.MaxBytesError))
	require.EqualValues(t, platform.MaxResponse, n)
}

func TestBaseWantsHTTPSOrThisHost(t *testing.T) {
	for text, want := range map[string]string{
		"https://slack.com/api/": "https://slack.com/api", "https://a.example": "https://a.example",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080", "http://localhost/x": "http://localhost/x", "http://[::1]:1": "http://[::1]:1",
	} {
		got, err := platform.BaseURL(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{
		"", "slack.com", "http://slack.com", "http://127.0.0.1.example", "https://u:hunter2@slack.com", "https://slack.com?x=hunter2",
		"https://slack.com#x", "ftp://127.0.0.1", "https://", "https://%zz",
	} {
		_, err := platform.BaseURL(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
