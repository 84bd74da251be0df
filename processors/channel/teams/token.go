package teams

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// early is how long before its end a token is replaced.
const early = 5 * time.Minute

// tokens are the tokens for requests to the connector,
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication#bot-to-connector. One request
// for a token runs at a time.
type tokens struct {
	config clientcredentials.Config
	client *http.Client
	now    func() time.Time

	turn    chan struct{} // guards current
	current *oauth2.Token
}

func newTokens(c Config, client *http.Client, now func() time.Time) *tokens {
	return &tokens{
		client: client, now: now, turn: make(chan struct{}, 1),
		config: clientcredentials.Config{
			ClientID: c.AppID, ClientSecret: c.Secret, TokenURL: c.TokenURL, Scopes: []string{c.Scope},
			AuthStyle: oauth2.AuthStyleInParams,
		},
	}
}

// get returns a token that is valid for some time.
func (t *tokens) get(ctx context.Context) (string, *adapter.Failure) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", platform.Failure(ctx.Err())
	}
	defer func() { <-t.turn }()
	if t.current != nil && (t.current.Expiry.IsZero() || t.now().Add(early).Before(t.current.Expiry)) {
		return t.current.AccessToken, nil
	}
	fresh, err := t.config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.client))
	if err != nil {
		return "", t.failure(err)
	}
	t.current = fresh
	return fresh.AccessToken, nil
}

// failure is the failure to get a token. All of them can be retried: the message is fine, and an operator can repair the secret.
func (t *tokens) failure(err error) *adapter.Failure {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		f := platform.Failure(err)
		f.Reason = "no token: " + f.Reason
		return f
	}
	f := &adapter.Failure{Reason: "no token"}
	if refused.Response != nil {
		f.Status = refused.Response.StatusCode
		f.Reason += ": status " + strconv.Itoa(f.Status)
		f.RetryAfter = platform.RetryAfter(refused.Response.Header.Get("Retry-After"), t.now())
	}
	return f
}

// forget discards a token that the connector refused.
func (t *tokens) forget(token string) {
	select {
	case t.turn <- struct{}{}:
	default:
		return // it is being replaced, or another attempt that is refused forgets it
	}
	defer func() { <-t.turn }()
	if t.current != nil && t.current.AccessToken == token {
		t.current = nil
	}
}

// Check implements adapter.Checker: it gets a token.
func (a *Adapter) Check(ctx context.Context) error {
	if _, f := a.tokens.get(ctx); f != nil {
		return f
	}
	return nil
}
