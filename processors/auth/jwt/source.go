package jwt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/loopback"
	"github.com/turntable-streams/turntable/processors/internal/jwks"
	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// source finds public keys.
type source interface {
	find(ctx context.Context, id, alg string) (public any, err error)
}

// errUnknownKey says that no key of the JWKS fits a token.
var errUnknownKey = errors.New("no key of the JWKS fits the token")

// newSource returns the source of a file or a URL.
func newSource(from string, c Config) (source, error) {
	if !strings.Contains(from, "://") {
		return openFile(from, c)
	}
	at, err := url.Parse(from)
	switch {
	case err != nil || at.Host == "" || at.User != nil || at.Fragment != "":
		return nil, fmt.Errorf("%w: JWKS: want a file, or a URL without a user", ErrConfig)
	case at.Scheme != "https" && (at.Scheme != "http" || !loopback.Is(at.Hostname())):
		return nil, fmt.Errorf("%w: JWKS: want HTTPS: anyone on the network path could replace the keys", ErrConfig)
	}
	client := *c.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r := &remote{url: at.String(), client: &client}
	r.keys = jwks.NewRemote(func(ctx context.Context) (*keySet, error) {
		set, err := r.fetch(ctx)
		if err != nil {
			c.Logger.Error("the JWKS cannot be read; the former keys stay in use for 24 hours at most", zap.String("host", at.Host), zap.Error(err))
		}
		return set, err
	}, c.Clock.Now, refreshAfter, usableFor)
	return r, nil
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
	// usableFor is how long keys are used that cannot be refreshed.
	usableFor = 24 * time.Hour
	maxJWKS   = 1 << 20
)

// remote is the keys of a URL.
type remote struct {
	url    string
	client *http.Client
	keys   *jwks.Remote[keySet]
}

func (r *remote) find(ctx context.Context, id, alg string) (public any, err error) {
	has := func(set *keySet) (ok bool) {
		public, ok = set.find(id, alg)
		return ok
	}
	switch set, err := r.keys.Get(ctx, has); {
	case errors.Is(err, jwks.ErrStale):
		return nil, errUnknownKey
	case err != nil:
		return nil, err
	case !has(set):
		return nil, errUnknownKey
	}
	return public, nil
}

func (r *remote) fetch(ctx context.Context) (*keySet, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, errors.New("the URL is not valid")
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := r.client.Do(request)
	if err != nil {
		var of *url.Error // has the URL, which may have a secret in its query
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxJWKS+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxJWKS {
		return nil, fmt.Errorf("larger than %d bytes", maxJWKS)
	}
	return parseKeySet(content)
}
