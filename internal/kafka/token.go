package kafka

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// TokenSource supplies the access tokens of SASL OAUTHBEARER: from a token endpoint, by the client credentials grant of OAuth 2
// ([TokenEndpoint]), or from a file that another program keeps up to date ([TokenFile]). Tokens and secrets do not appear in
// errors. Its method is safe for concurrent use.
type TokenSource interface {
	// Token returns a token that has not expired as far as its source can tell.
	Token(ctx context.Context) (string, error)
}

var errToken = errors.New("the access token is empty or contains blanks or control characters")

// checkToken rejects a token that would end its field of the SASL message.
func checkToken(token string) error {
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errToken
	}
	return nil
}

// tokenExpiry returns the claim exp of a token that is a JWT. ok is false for any other token. The signature is not verified:
// that is up to the broker.
func tokenExpiry(token string) (at time.Time, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) < 2 {
		return time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	// The limits keep the conversion to an integer defined.
	if json.Unmarshal(raw, &claims) != nil || !(claims.Exp > 0 && claims.Exp < 1<<40) {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Exp), 0), true
}
