package teams

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/go-json-experiment/json/jsontext"
	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/turntable-streams/turntable/internal/claims"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

const (
	// leeway is the clock skew that the Bot Framework allows.
	leeway = 5 * time.Minute
	// The keys change rarely, and a day is how often they should be read again.
	refreshAfter = 24 * time.Hour
	// retryAfter is the shortest time between two attempts to read the keys.
	retryAfter = 30 * time.Second
	// usableFor is how long keys are used that cannot be read again, and readWithin how long reading them may take.
	usableFor  = 5 * refreshAfter
	readWithin = 10 * time.Second
	maxKeys    = 256
	minRSABits = 2048
	maxToken   = 16 << 10
)

// verifier verifies the tokens of activities as in
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication#connector-to-bot.
type verifier struct {
	metadata string
	client   *http.Client
	now      func() time.Time
	parser   *gojwt.Parser

	known atomic.Pointer[keySet]
	turn  chan struct{} // has an element while the keys are read; guards tried
	tried time.Time
}

// keySet is the keys by their ID, and when they were read.
type keySet struct {
	keys map[string]signer
	at   time.Time
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
	return &verifier{
		metadata: c.MetadataURL, client: client, now: now, turn: make(chan struct{}, 1),
		parser: gojwt.NewParser(
			gojwt.WithValidMethods([]string{"RS256"}), gojwt.WithIssuer(c.Issuer), gojwt.WithAudience(c.AppID),
			gojwt.WithExpirationRequired(), gojwt.WithLeeway(leeway), gojwt.WithTimeFunc(now), gojwt.WithStrictDecoding(),
		),
	}
}

// token verifies the header Authorization of an activity.
func (v *verifier) token(ctx context.Context, header http.Header) (proof, error) {
	values := header.Values("Authorization")
	if len(values) != 1 || len(values[0]) > maxToken {
		return proof{}, errToken
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || !claims.Unambiguous(text) {
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

// find returns the key with an ID. It reads the keys if it does not know it or they are old, and uses old ones if that fails. A
// token with a known key does not wait for that.
func (v *verifier) find(ctx context.Context, id string) (signer, error) {
	key, age, known := v.lookup(id)
	switch {
	case known && age < refreshAfter:
		return key, nil
	case known && age < usableFor:
		select {
		case v.turn <- struct{}{}:
		default:
			return key, nil // another request reads them
		}
	default:
		select {
		case v.turn <- struct{}{}:
		case <-ctx.Done():
			return signer{}, errKeys
		}
	}
	defer func() { <-v.turn }()
	if now := v.now(); v.tried.IsZero() || now.Sub(v.tried) >= retryAfter || now.Before(v.tried) {
		v.tried = now
		// The end of one request must not keep the keys from the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
		defer cancel()
		if keys, err := v.read(ctx); err == nil {
			v.known.Store(&keySet{keys, now})
		}
	}
	key, age, known = v.lookup(id)
	switch {
	case v.known.Load() == nil || age >= usableFor:
		return signer{}, errKeys
	case !known:
		return signer{}, errToken
	}
	return key, nil
}

// lookup returns a key from memory, and how old the keys are.
func (v *verifier) lookup(id string) (key signer, age time.Duration, known bool) {
	set := v.known.Load()
	if set == nil {
		return signer{}, 0, false
	}
	key, known = set.keys[id]
	return key, v.now().Sub(set.at), known
}

// read reads the metadata and the keys that it names.
func (v *verifier) read(ctx context.Context) (map[string]signer, error) {
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
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		if id, key, ok := parseKey(raw); ok {
			keys[id] = key
		}
	}
	if len(keys) == 0 {
		return nil, errKeys
	}
	return keys, nil
}

func (v *verifier) get(ctx context.Context, address string, into any) error {
	answer, err := platform.Do(ctx, v.client, http.MethodGet, address, "", nil)
	if err != nil || answer.Status != http.StatusOK {
		return errKeys
	}
	return platform.Decode(answer.Body, into)
}

// parseKey returns an RSA key for signatures. Certificates are not checked, and no address in a key is dialed.
func parseKey(raw jsontext.Value) (id string, key signer, ok bool) {
	var m jwkset.JWKMarshal
	var more struct {
		Endorsements []string `json:"endorsements"`
	}
	if platform.Decode(raw, &m) != nil || platform.Decode(raw, &more) != nil {
		return "", signer{}, false
	}
	if m.KID == "" || m.USE != "" && m.USE != jwkset.UseSig {
		return "", signer{}, false
	}
	m.X5U, m.X5C, m.X5T, m.X5TS256 = "", nil, "", ""
	parsed, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return "", signer{}, false
	}
	public, ok := parsed.Key().(*rsa.PublicKey)
	if !ok || public.N.BitLen() < minRSABits || public.E < 3 {
		return "", signer{}, false
	}
	return m.KID, signer{public, more.Endorsements}, true
}

// endorses reports whether the token's key may sign activities of a channel, such as msteams.
func (p proof) endorses(channel string) bool {
	return channel != "" && slices.Contains(p.endorsements, channel)
}
