package token

import "encoding/base64"

// Signed returns a signed token with any payload.
func Signed(secret, payload string) string {
	half := base64.RawURLEncoding.EncodeToString
	return half([]byte(payload)) + "." + half(sign(secret, []byte(payload)))
}
