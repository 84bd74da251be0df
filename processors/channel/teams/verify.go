package teams

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/turntable-streams/turntable/internal/claims"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/internal/jwks"
)

const (
	// leeway is the clock skew that the Bot Framework allows.
	leeway = 5 * time.Minute
	// The keys change rarely, and a day is how often they should be read again.
	refreshAfter = 24 * time.Hour
	// usableFor is how long keys are used that cannot be read again.
	usableFor = 5 * refreshAfter
	maxToken  = 16 << 10
)

// verifier verifies the tokens of activities as in
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication#connector-to-bot.
type verifier struct {
	metadata string
	client   *http.Client
	parser   *gojwt.Parser
	keys     *jwks.Remote[map[string]signer] // by their ID
}

// signer is a key that signs tokens, and the channels for which it may.
type signer struct {
	public       *rsa.PublicKey
	endorsements []string
}

type serviceClaims struct {
	gojwt.RegisteredClaims
	ServiceURL string `json:"serviceurl"`
}

// proof is what a valid token says about its activity.
type proof struct {
	serviceURL   string
	endorsements []string
}

// errKeys is the error of a token that cannot be judged: the sender may try again.
var errKeys = errors.New("teams: the keys of the Bot Framework cannot be read")

var errToken = errors.New("teams: the token is not valid")

func newVerifier(c Config, client *http.Client, now func() time.Time) *verifier {
	v := &verifier{
		metadata: c.MetadataURL, client: client,
		parser: gojwt.NewParser(
			gojwt.WithValidMethods([]string{"RS256"}), gojwt.WithIssuer(c.Issuer), gojwt.WithAudience(c.AppID),
			gojwt.WithExpirationRequired(), gojwt.WithLeeway(leeway), gojwt.WithTimeFunc(now), gojwt.WithStrictDecoding(),
		),
	}
	v.keys = jwks.NewRemote(v.read, now, refreshAfter, usableFor)
	return v
}

// token verifies the header Authorization of an activity.
func (v *verifier) token(ctx context.Context, header http.Header) (proof, error) {
	text, ok := platform.BearerToken(header)
	if !ok || len(text) > maxToken || !claims.Unambiguous(text) {
		return proof{}, errToken
	}
	var c serviceClaims
	var key signer
	_, err := v.parser.ParseWithClaims(text, &c, func(t *gojwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical {
			return nil, errToken
		}
		id, _ := t.Header["kid"].(string)
		var err error
		key, err = v.find(ctx, id)
		return key.public, err
	})
	switch {
	case errors.Is(err, errKeys):
		return proof{}, errKeys
	case err != nil || c.ServiceURL == "":
		return proof{}, errToken
	}
	return proof{serviceURL: c.ServiceURL, endorsements: key.endorsements}, nil
}

func (v *verifier) find(ctx context.Context, id string) (key signer, err error) {
	has := func(keys *map[string]signer) (ok bool) {
		key, ok = (*keys)[id]
		return ok
	}
	switch keys, err := v.keys.Get(ctx, has); {
	case err != nil:
		return signer{}, errKeys
	case !has(keys):
		return signer{}, errToken
	}
	return key, nil
}

// read reads the metadata and the keys that it names.
func (v *verifier) read(ctx context.Context) (*map[string]signer, error) {
	var metadata struct {
		JWKS string `json:"jwks_uri"`
	}
	if err := v.get(ctx, v.metadata, &metadata); err != nil {
		return nil, err
	}
	configured, err := url.Parse(v.metadata)
	if err != nil {
		return nil, errKeys
	}
	named, err := url.Parse(metadata.JWKS)
	if err != nil || named.Scheme != configured.Scheme || named.Host != configured.Host || named.User != nil {
		return nil, fmt.Errorf("%w: they are on another host than their metadata", errKeys)
	}
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := v.get(ctx, metadata.JWKS, &set); err != nil {
		return nil, err
	}
	keys := map[string]signer{}
	for _, raw := range set.Keys[:min(len(set.Keys), jwks.MaxKeys)] {
		var more struct {
			Endorsements []string `json:"endorsements"`
		}
		key, ok := jwks.Parse(raw)
		public, isRSA := key.Public.(*rsa.PublicKey)
		if ok && isRSA && key.ID != "" && platform.Decode(raw, &more) == nil {
			keys[key.ID] = signer{public, more.Endorsements}
		}
	}
	if len(keys) == 0 {
		return nil, errKeys
	}
	return &keys, nil
}

func (v *verifier) get(ctx context.Context, address string, into any) error {
	answer, err := platform.Do(ctx, v.client, http.MethodGet, address, "", nil)
	if err != nil || answer.Status != http.StatusOK {
		return errKeys
	}
	return platform.Decode(answer.Body, into)
}

// endorses reports whether the token's key may sign activities of a channel, such as msteams.
func (p proof) endorses(channel string) bool {
	return channel != "" && slices.Contains(p.endorsements, channel)
}
