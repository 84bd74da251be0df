package platform

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// EqualSecret compares a text with a secret. The time it takes depends on neither the secret nor its length. An empty secret equals
// nothing.
func EqualSecret(got, secret string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && secret != ""
}

// BearerToken returns the token of an Authorization header, and false if there is not exactly one header with a bearer token.
func BearerToken(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}
