package token

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ErrMint is wrapped by the errors of Mint.
var ErrMint = errors.New("token: cannot be minted")

// Mint returns the token of a tool call, with the ID of the secret. Equal arguments give equal tokens. The callback door must
// accept the secret. Mint returns an error for a secret shorter than MinSecret, claims without Expires, a TotalTools that is
// negative or above math.MaxInt32, and a SessionID, ToolUseID or CallID that is not valid UTF-8.
func Mint(secret string, c Claims) (string, error) {
	k, err := newKey(secret)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMint, err)
	}
	if c.Expires.Unix() <= 0 {
		return "", fmt.Errorf("%w: it would never expire", ErrMint)
	}
	if c.TotalTools < 0 || c.TotalTools > math.MaxInt32 {
		return "", fmt.Errorf("%w: %d tools", ErrMint, c.TotalTools)
	}
	// Invalid UTF-8 would be replaced, so the answer would name another call.
	if !utf8.ValidString(c.SessionID) || !utf8.ValidString(c.ToolUseID) || !utf8.ValidString(c.CallID) {
		return "", fmt.Errorf("%w: session, tool_use_id or call_id is not UTF-8", ErrMint)
	}
	payload := c.payload(k.id)
	half := base64.RawURLEncoding.EncodeToString
	return half(payload) + "." + half(sign(k.secret, payload)), nil
}
