package jwt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/loopback"
	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// source finds public keys.
type source interface {
	find(ctx context.Context, id, alg string) (public any, err error)
}

// errUnknownKey says that no key of the JWKS fits a token.
var errUnknownKey = errors.New("no key of the JWKS fits the token")

// newSource returns the source of a file or a URL.
func newSource(jwks string, c Config) (source, error) {
	if !strings.Contains(jwks, "://") {
		return openFile(jwks, c)
	}
	at, err := url.Parse(jwks)
	switch {
	case err != nil || at.Host == "" || at.User != nil || at.Fragment != "":
		return nil, fmt.Errorf("%w: JWKS: want a file, or a URL without a user", ErrConfig)
	case at.Scheme != "https" && (at.Scheme != "http" || !loopback.Is(at.Hostname())):
		return nil, fmt.Errorf("%w: JWKS: want HTTPS: anyone on the network path could replace the keys", ErrConfig)
	}
	client := *c.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &remote{url: at.String(), host: at.Host, client: &client, now: c.Clock.Now, logger: c.Logger, turn: make(chan struct{}, 1)}, nil
}

// file is the keys of a file.
type file struct{ keys *reload.Value[keySet] }

func openFile(path string, c Config) (source, error) {
	parse := func(contents [][]byte, _ *keySet) (*keySet, error) { return parseKeySet(contents[0]) }
	keys, err := reload.Open(parse, c.Clock.Now, c.Logger, path)
	if err != nil {
		return nil, fmt.Errorf("jwt: open the JWKS: %w", err)
	}
	return file{keys}, nil
}

func (f file) find(_ context.Context, id, alg string) (any, error) {
	if public, ok := f.keys.Get().find(id, alg); ok {
		return public, nil
	}
	return nil, errUnknownKey
}

const (
	refreshAfter = time.Hour
	// retryAfter is the shortest time between two requests to the URL.
	retryAfter = 30 * time.Second
	// usableFor is how long keys are used that cannot be refreshed.
	usableFor    = 24 * time.Hour
	fetchTimeout = 10 * time.Second
	maxJWKS      = 1 << 20
)

// remote is the keys of a URL.
type remote struct {
	url, host string
	client    *http.Client
	now       func() time.Time
	logger    *zap.Logger

	turn  chan struct{} // has an element while a request to the URL runs; guards tried
	tried time.Time
	keys  atomic.Pointer[fetched]
}

type fetched struct {
	set *keySet
	at  time.Time
}

func (r *remote) find(ctx context.Context, id, alg string) (any, error) {
	public, age := r.known(id, alg)
	switch {
	case public != nil && age < refreshAfter:
		return public, nil
	case public != nil && age < usableFor:
		// The one that gets the turn waits for the new keys. The others use those that they have.
		select {
		case r.turn <- struct{}{}:
		default:
			return public, nil
		}
	default:
		select {
		case r.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-r.turn }()
	if now := r.now(); r.tried.IsZero() || now.Sub(r.tried) >= retryAfter || now.Before(r.tried) {
		r.tried = now
		// The end of one request must not keep the keys from the others.
		if err := r.fetch(context.WithoutCancel(ctx), now); err != nil {
			r.logger.Error("the JWKS cannot be read; the former keys stay in use for 24 hours at most",
				zap.String("host", r.host), zap.Error(err))
		}
	}
	if public, age = r.known(id, alg); public == nil || age >= usableFor {
		return nil, errUnknownKey
	}
	return public, nil
}

// known returns a key from memory, and how old it is.
func (r *remote) known(id, alg string) (public any, age time.Duration) {
	keys := r.keys.Load()
	if keys == nil {
		return nil, 0
	}
	public, _ = keys.set.find(id, alg)
	return public, r.now().Sub(keys.at)
}

func (r *remote) fetch(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return errors.New("the URL is not valid")
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := r.client.Do(request)
	if err != nil {
		var of *url.Error // has the URL, which may have a secret in its query
		if errors.As(err, &of) {
			err = of.Err
		}
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxJWKS+1))
	if err != nil {
		return err
	}
	if len(content) > maxJWKS {
		return fmt.Errorf("larger than %d bytes", maxJWKS)
	}
	set, err := parseKeySet(content)
	if err != nil {
		return err
	}
	r.keys.Store(&fetched{set, now})
	return nil
}
