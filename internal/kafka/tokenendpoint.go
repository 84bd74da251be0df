package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/turntable-streams/turntable/internal/loopback"
)

const (
	// fetchLimit bounds a fetch. It is below the shortest session timeout of a group's default, because a member that
	// authenticates its connection again sends no heartbeat meanwhile.
	fetchLimit = 5 * time.Second
	// answerLimit bounds the size of an answer.
	answerLimit = 64 << 10
)

// TokenEndpointConfig configures NewTokenEndpoint.
type TokenEndpointConfig struct {
	// URL is the token endpoint: https, or http on a loopback address.
	URL      string
	ID       string
	Secret   string
	Scope    string // optional; several are separated by blanks
	Encode   bool   // URL-encode ID and secret, as OAuth 2 requires and Kafka's clients by default do not
	Roots    *x509.CertPool
	Now      func() time.Time // nil: the system clock
	MaxFetch time.Duration    // 0: 5 s
}

// TokenEndpoint fetches tokens from a token endpoint by the client credentials grant. A token is used for 80 % of its lifetime.
// If no new one can be fetched then, it stays in use until it expires.
type TokenEndpoint struct {
	grant  clientcredentials.Config
	client *http.Client
	limit  time.Duration
	now    func() time.Time
	turn   chan struct{} // has one element: the right to use state
	state  tokenCache
}

// CheckTokenURL returns an error, without the URL, if a token endpoint may not be used.
func CheckTokenURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("want https://host/path, or file:///path")
	case u.User != nil || u.Fragment != "":
		return errors.New("a user, password or fragment in the URL is not supported")
	case u.Scheme == "https" || u.Scheme == "http" && loopback.Is(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return errors.New("want https: over http, the client's secret could be read on the network")
	default:
		return errors.New("want https://host/path, or file:///path")
	}
}

// NewTokenEndpoint returns the source of an endpoint. It does not connect. The error contains no value of the configuration.
func NewTokenEndpoint(c TokenEndpointConfig) (*TokenEndpoint, error) {
	if err := CheckTokenURL(c.URL); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxFetch <= 0 {
		c.MaxFetch = fetchLimit
	}
	e := &TokenEndpoint{
		grant: clientcredentials.Config{
			ClientID: c.ID, ClientSecret: c.Secret, TokenURL: c.URL, AuthStyle: oauth2.AuthStyleInHeader,
		},
		limit: c.MaxFetch, now: c.Now, turn: make(chan struct{}, 1),
	}
	if c.Scope != "" {
		e.grant.Scopes = []string{c.Scope}
	}
	e.client = &http.Client{
		Transport: &tokenTransport{
			id: c.ID, secret: c.Secret, encode: c.Encode,
			base: &http.Transport{
				Proxy:             http.ProxyFromEnvironment,
				TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
				DisableKeepAlives: true, // a fetch is rare
			},
		},
		// The secret is not sent to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.turn <- struct{}{}
	return e, nil
}

// Token implements Source. It blocks while a token is fetched, 5 s at most. After a failure, the next fetches are at least
// 250 ms to 10 s apart, and Token returns the failure in between.
func (e *TokenEndpoint) Token(ctx context.Context) (string, error) {
	select {
	case <-e.turn:
	case <-ctx.Done():
		return "", fmt.Errorf("oauthbearer: %w", ctx.Err())
	}
	defer func() { e.turn <- struct{}{} }()
	if token, failure := e.state.lookup(e.now()); token != "" || failure != nil {
		return token, failure
	}
	token, lifetime, err := e.fetch(ctx)
	now := e.now()
	switch {
	case err == nil:
		e.state = e.state.fetched(token, lifetime, now)
		return token, nil
	case ctx.Err() != nil: // says nothing about the endpoint
		return "", err
	}
	e.state = e.state.failed(err, now)
	if e.state.valid(now) {
		return e.state.token, nil
	}
	return "", err
}

// fetch returns a token and its lifetime, or 0 if it is not known.
func (e *TokenEndpoint) fetch(ctx context.Context) (token string, lifetime time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	answer, err := e.grant.Token(context.WithValue(ctx, oauth2.HTTPClient, e.client))
	if err != nil {
		return "", 0, fmt.Errorf("oauthbearer: no token from the token endpoint: %w", fetchReason(err, e.limit))
	}
	if err := checkToken(answer.AccessToken); err != nil {
		return "", 0, fmt.Errorf("oauthbearer: token endpoint: %w", err)
	}
	// The grant computes the expiry by the system clock.
	switch at, ok := tokenExpiry(answer.AccessToken); {
	case !answer.Expiry.IsZero():
		lifetime = time.Until(answer.Expiry)
	case ok:
		lifetime = at.Sub(e.now())
	}
	return answer.AccessToken, lifetime, nil
}

// fetchReason returns a cause without anything that the endpoint could have repeated from the request.
func fetchReason(err error, limit time.Duration) error {
	var refused *oauth2.RetrieveError
	var failed *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", limit)
	case errors.As(err, &refused) && refused.Response != nil:
		return fmt.Errorf("status %d%s", refused.Response.StatusCode, errorCode(refused.ErrorCode))
	case errors.As(err, &failed):
		return failed.Err // without the URL
	default:
		return errors.New("the answer contains no access_token")
	}
}

// errorCode returns a code that OAuth 2 defines, in parentheses; the meaning of any other code is not known.
func errorCode(code string) string {
	switch code {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope":
		return " (" + code + ")"
	default:
		return ""
	}
}

// tokenTransport sends the credentials as Kafka's clients do and bounds the answers.
type tokenTransport struct {
	id, secret string
	encode     bool
	base       http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if !t.encode {
		r.SetBasicAuth(t.id, t.secret)
	}
	r.Header.Set("Accept", "application/json")
	answer, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > answerLimit:
		return nil, fmt.Errorf("the answer is longer than %d bytes", answerLimit)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}
