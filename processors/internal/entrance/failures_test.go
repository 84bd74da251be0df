package entrance

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

func TestFailuresOfAnAddressAreLimited(t *testing.T) {
	f := NewFailures(10)
	for range addressFailures {
		require.Zero(t, f.wait("a", "", noon))
		f.count("a", "", noon)
	}
	require.Equal(t, addressEvery, f.wait("a", "", noon))
	require.Zero(t, f.wait("b", "", noon))
	require.Zero(t, f.wait("a", "", noon.Add(addressEvery)))
	for range 1000 {
		f.count("a", "", noon)
	}
	require.Equal(t, (mostDebt+1)*addressEvery, f.wait("a", "", noon), "those at the same time do not add up")
}

func TestFailuresForAnAccountAreLimitedFromAddressesThatFail(t *testing.T) {
	f := NewFailures(1000)
	tries := 0
	for i := range 500 { // each address has few failures
		for range fewFailures {
			if address := fmt.Sprint(i); f.wait(address, "desk", noon) == 0 {
				f.count(address, "desk", noon)
				tries++
			}
		}
		require.Zero(t, f.wait("owner", "desk", noon), "strangers cannot lock out the owner")
	}
	f.count("9", "", noon)
	require.Positive(t, f.wait("9", "desk", noon))
	require.Zero(t, f.wait("9", "other", noon))
	require.Equal(t, 500*fewFailures, tries)
	require.Zero(t, f.wait("9", "desk", noon.Add(time.Hour)))
}

func TestFailuresAreBounded(t *testing.T) {
	f := NewFailures(10)
	for i := range 1000 {
		f.count(fmt.Sprint(i), strings.Repeat("x", 10_000)+fmt.Sprint(i), noon)
		f.accepted.Add(f.credential(withToken(fmt.Sprint(i))), struct{}{})
	}
	require.Equal(t, []int{10, 1, 10}, []int{f.addresses.Len(), f.accounts.Len(), f.accepted.Len()})
}

func withToken(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.RemoteAddr = "198.51.100.7:1"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestCredentialIsEverythingThatMayBeOne(t *testing.T) {
	f, other := NewFailures(1), NewFailures(1)
	base := func() *http.Request { return withToken("t") }
	same := f.credential(base())
	require.NotEqual(t, same, other.credential(base()), "digests are keyed")
	for _, name := range []string{"Accept", "Accept-Language", "Content-Type", "User-Agent", "Traceparent", "X-Forwarded-For", "Sec-Websocket-Key"} {
		r := base()
		r.Header.Set(name, "x")
		require.Equal(t, same, f.credential(r), name)
	}
	for _, name := range []string{"Authorization", "Cookie", "Sec-Websocket-Protocol", "X-Api-Key", "Tenant"} {
		r := base()
		r.Header.Set(name, "x")
		require.NotEqual(t, same, f.credential(r), name)
	}
	r := base()
	r.URL.RawQuery = "token=x"
	require.NotEqual(t, same, f.credential(r))
	r = base()
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte("x")}}}
	require.NotEqual(t, same, f.credential(r))
	r, two := base(), base()
	r.Header["A"], r.Header["B"] = []string{"B"}, []string{"c"}
	two.Header["A"] = []string{"B", "B", "c"}
	require.NotEqual(t, f.credential(r), f.credential(two))
}

// authenticated is an entrance that knows the token "good" and those that begin with "key".
func authenticated(t *testing.T, c *clock.Fake, change ...func(*Config)) *Entrance {
	t.Helper()
	config := Config{Name: "test", Door: auth.Door{
		Concurrency: 1000, Clock: c,
		Authenticate: func(r *http.Request) (auth.Caller, error) {
			token, err := auth.Bearer(r)
			switch {
			case err != nil:
				return auth.Caller{}, err
			case token == "good", strings.HasPrefix(token, "key"):
				return auth.Caller{UserID: token}, nil
			case strings.HasPrefix(token, "desk"):
				return auth.Caller{Subject: "desk"}, auth.ErrRejected
			case token == "unknown":
				return auth.Caller{}, auth.ErrNoCredential
			}
			return auth.Caller{}, auth.ErrRejected
		},
	}}
	for _, f := range change {
		f(&config)
	}
	var check bounds.Check
	Complete(&check, &config.Door)
	e := New(&check, config)
	require.NoError(t, check.Err(errors.New("test")))
	return e
}

// enter returns the status of a request's refusal, 200 if there is none.
func enter(e *Entrance, r *http.Request) (status int, refusal *Refusal) {
	v, refusal := e.Open(httptest.NewRecorder(), r)
	defer v.Close()
	if refusal == nil {
		refusal = v.Authenticate(auth.Read)
	}
	if refusal != nil {
		return refusal.Status, refusal
	}
	return http.StatusOK, nil
}

func TestGuessesAreAnsweredWith429(t *testing.T) {
	for name, token := range map[string]string{"of a known kind": "guess", "of an unknown kind": "unknown", "malformed": "\u00e9"} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewFake(noon)
			e := authenticated(t, c)
			for range 3 {
				status, _ := enter(e, withToken(token))
				require.Equal(t, 401, status)
			}
			status, _ := enter(e, withToken("good"))
			require.Equal(t, 200, status, "from an address with few failures")
			answers := map[int]int{}
			for range 20_000 {
				status, refusal := enter(e, withToken(token))
				answers[status]++
				require.True(t, status == 401 || refusal.RetryAfter > 0)
			}
			require.Equal(t, map[int]int{401: addressFailures - 3, 429: 20_000 - addressFailures + 3}, answers)
			status, _ = enter(e, withToken("good"))
			require.Equal(t, 200, status, "it was accepted before the attack, and others share the address")
			status, _ = enter(e, withToken("key"))
			require.Equal(t, 429, status, "it may be a guess")
			elsewhere := withToken("key")
			elsewhere.RemoteAddr = "203.0.113.9:1"
			status, _ = enter(e, elsewhere)
			require.Equal(t, 200, status)
			c.Advance(addressEvery)
			status, _ = enter(e, withToken("key2"))
			require.Equal(t, 200, status)
		})
	}
}

func TestRequestsWithoutACredentialTryNone(t *testing.T) {
	e := authenticated(t, clock.NewFake(noon))
	for range 1000 {
		status, refusal := enter(e, withToken(""))
		require.Equal(t, 401, status)
		require.True(t, errors.Is(refusal.Cause, auth.ErrNoCredential))
	}
	status, _ := enter(e, withToken("good"))
	require.Equal(t, 200, status)
}

func TestGuessesForAnAccountAreLimitedAcrossAddresses(t *testing.T) {
	e := authenticated(t, clock.NewFake(noon))
	from := func(i int, token string) int {
		r := withToken(token)
		r.RemoteAddr = fmt.Sprintf("198.51.%d.%d:1", i/250, i%250)
		status, _ := enter(e, r)
		return status
	}
	answers := map[int]int{}
	for i := range 1000 {
		for n := range 10 {
			answers[from(i, fmt.Sprint("desk", n))]++
		}
	}
	require.Equal(t, 10_000, answers[401]+answers[429])
	require.LessOrEqual(t, answers[401], accountFailures+1000*fewFailures)
	require.Equal(t, 200, from(5000, "good"))
}

func TestAcceptedCredentialThatFailsIsForgotten(t *testing.T) {
	revoked := false
	e := authenticated(t, clock.NewFake(noon), func(c *Config) {
		c.Authenticate = func(r *http.Request) (auth.Caller, error) {
			if token, err := auth.Bearer(r); err != nil || token != "good" || revoked {
				return auth.Caller{}, auth.ErrRejected
			}
			return auth.Caller{}, nil
		}
	})
	status, _ := enter(e, withToken("good"))
	require.Equal(t, 200, status, "a caller without a name")
	for range 100 {
		_, _ = enter(e, withToken("guess"))
	}
	status, _ = enter(e, withToken("good"))
	require.Equal(t, 200, status)
	revoked = true
	_, _ = enter(e, withToken("good"))
	revoked = false
	status, _ = enter(e, withToken("good"))
	require.Equal(t, 429, status)
}
