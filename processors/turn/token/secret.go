package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// MinSecret is the minimum length of a secret, in bytes: the security of HMAC-SHA256. Create one with
//
//	openssl rand -base64 32
const MinSecret = 32

// ErrSecret is wrapped by the error about a secret that is too short.
var ErrSecret = errors.New("token: secret is too short")

// key is a secret and its ID.
type key struct{ secret, id string }

// newKey returns the key of a secret, or an error that wraps ErrSecret.
func newKey(secret string) (key, error) {
	if len(secret) < MinSecret || strings.TrimSpace(secret) == "" {
		return key{}, fmt.Errorf("%w: want at least %d bytes", ErrSecret, MinSecret)
	}
	return key{secret, keyID(secret)}, nil
}

// keyID returns the ID of a secret, which tokens carry. All processes derive the same ID, so it is not configured. It tells a
// reader of a token no more about the secret than the signature does.
func keyID(secret string) string {
	const bytes = 6
	return base64.RawURLEncoding.EncodeToString(sign(secret, []byte("turntable callback key ID"))[:bytes])
}

func sign(secret string, payload []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(payload)
	return h.Sum(nil)
}
