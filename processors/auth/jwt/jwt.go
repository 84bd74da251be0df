package jwt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/claims"
	"github.com/turntable-streams/turntable/processors/auth"
)

// Tokens authenticates callers by JSON Web Tokens. It is safe for concurrent use, starts no goroutine, and needs not be
// closed.
type Tokens struct {
	source source
	parser *gojwt.Parser
	config Config
}

// New returns the authentication with the public keys of a JWKS, which is a file or a URL. Tokens must have the issuer and
// the audience, neither of which may be empty. Its error wraps ErrConfig for an invalid argument or field, and ErrKeys for a
// file without a usable key.
func New(jwks, issuer, audience string, c Config) (*Tokens, error) {
	var check bounds.Check
	c.complete(&check)
	for name, value := range map[string]string{"JWKS": jwks, "issuer": issuer, "audience": audience} {
		if strings.TrimSpace(value) == "" {
			check.Wrong(name, "is empty")
		}
	}
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	s, err := newSource(jwks, c)
	if err != nil {
		return nil, err
	}
	return &Tokens{source: s, config: c, parser: gojwt.NewParser(
		gojwt.WithValidMethods(c.Algorithms), gojwt.WithIssuer(issuer), gojwt.WithAudience(audience),
		gojwt.WithExpirationRequired(), gojwt.WithIssuedAt(), gojwt.WithLeeway(c.Leeway), gojwt.WithTimeFunc(c.Clock.Now),
		gojwt.WithStrictDecoding(),
	)}, nil
}

var _ auth.Authenticate = (*Tokens)(nil).Authenticate

// Authenticate returns the caller of a request with a token. It is an auth.Authenticate. Its error wraps
// auth.ErrNoCredential if the request has no bearer token of three parts, and auth.ErrRejected if it has one that is not
// valid; the Caller then has the Subject that the token claims. It may wait up to 10 s for the keys of a URL.
func (t *Tokens) Authenticate(r *http.Request) (auth.Caller, error) {
	text, err := auth.Bearer(r)
	if err != nil {
		return auth.Caller{}, fmt.Errorf("jwt: %w", err)
	}
	if strings.Count(text, ".") != 2 {
		return auth.Caller{}, fmt.Errorf("jwt: %w", auth.ErrNoCredential)
	}
	caller, err := t.verify(r.Context(), text)
	if err != nil {
		// The reason is for logs. It contains nothing of the token.
		return caller, fmt.Errorf("jwt: %w: %w", auth.ErrRejected, err)
	}
	return caller, nil
}

func (t *Tokens) verify(ctx context.Context, text string) (auth.Caller, error) {
	if !claims.Unambiguous(text) {
		return auth.Caller{}, gojwt.ErrTokenMalformed
	}
	of := gojwt.MapClaims{}
	_, err := t.parser.ParseWithClaims(text, of, func(token *gojwt.Token) (any, error) {
		if _, critical := token.Header["crit"]; critical {
			return nil, errors.New("the header crit is not supported")
		}
		id, _ := token.Header["kid"].(string)
		return t.source.find(ctx, id, token.Method.Alg())
	})
	if err != nil {
		user, _ := of[t.config.UserClaim].(string) // that the token claims
		if !validUser(user) {
			return auth.Caller{}, reason(err)
		}
		return auth.Caller{Subject: subjectOf(user)}, reason(err)
	}
	return t.caller(of)
}

// reason returns an error without the texts of the library, which may quote the token.
func reason(err error) error {
	for _, known := range []error{
		gojwt.ErrTokenExpired, gojwt.ErrTokenNotValidYet, gojwt.ErrTokenUsedBeforeIssued, gojwt.ErrTokenInvalidIssuer,
		gojwt.ErrTokenInvalidAudience, gojwt.ErrTokenRequiredClaimMissing, gojwt.ErrTokenInvalidClaims,
		gojwt.ErrTokenSignatureInvalid, errUnknownKey, gojwt.ErrTokenUnverifiable, gojwt.ErrTokenMalformed,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return gojwt.ErrTokenUnverifiable
}

func (t *Tokens) caller(of gojwt.MapClaims) (auth.Caller, error) {
	c := t.config
	user, _ := of[c.UserClaim].(string)
	if !validUser(user) {
		return auth.Caller{}, errors.New("the claim with the user is missing or unusable")
	}
	expires, err := of.GetExpirationTime()
	if err != nil || expires == nil || expires.Unix() <= 0 {
		return auth.Caller{}, gojwt.ErrTokenRequiredClaimMissing
	}
	sessions, rights := c.Sessions, c.Rights
	if c.SessionsClaim != "" {
		if sessions, err = auth.ParseSessions(texts(of[c.SessionsClaim])...); err != nil {
			return auth.Caller{}, errors.New("the claim with the sessions is missing or unusable")
		}
	}
	if c.RightsClaim != "" {
		if rights = rightsOf(of[c.RightsClaim]); rights == 0 {
			return auth.Caller{}, errors.New("the claim with the rights is missing or has none")
		}
	}
	return auth.Caller{
		UserID: user, Subject: subjectOf(user), MayUse: sessions.For(user), Rights: rights,
		Expires: expires.Add(c.Leeway).Round(0).Truncate(time.Millisecond),
	}, nil
}

func subjectOf(user string) string { return "jwt:" + user }

func validUser(user string) bool {
	return strings.TrimSpace(user) != "" && len(user) <= 256 &&
		!strings.ContainsFunc(user, func(r rune) bool { return !unicode.IsPrint(r) })
}

// texts returns the elements of a claim that is a text or an array of texts; nil for another value.
func texts(claim any) (list []string) {
	switch v := claim.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil
			}
			list = append(list, s)
		}
	}
	return list
}

func rightsOf(claim any) (set auth.Rights) {
	for _, text := range texts(claim) {
		for name := range strings.FieldsSeq(text) {
			if r, err := auth.ParseRights(name); err == nil {
				set |= r
			}
		}
	}
	return set
}
