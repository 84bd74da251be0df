package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// ErrMint is wrapped by the errors of Mint.
var ErrMint = errors.New("token: cannot be minted")

// Mint returns the token of a tool call. Equal arguments give equal tokens. The secret must not be blank, and the callback
// door must accept it. Mint returns an error for a blank secret, a TotalTools that is negative or above math.MaxInt32, and
// a SessionID, ToolUseID or CallID that is not valid UTF-8.
func Mint(secret string, c Claims) (string, error) {
	if strings.TrimSpace(secret) == "" {
		return "", fmt.Errorf("%w: blank secret", ErrMint)
	}
	if c.TotalTools < 0 || c.TotalTools > math.MaxInt32 {
		return "", fmt.Errorf("%w: %d tools", ErrMint, c.TotalTools)
	}
	// Invalid UTF-8 would be replaced, so the answer would name another call.
	if !utf8.ValidString(c.SessionID) || !utf8.ValidString(c.ToolUseID) || !utf8.ValidString(c.CallID) {
		return "", fmt.Errorf("%w: session, tool_use_id or call_id is not UTF-8", ErrMint)
	}
	payload := c.payload()
	half := base64.RawURLEncoding.EncodeToString
	return half(payload) + "." + half(sign(secret, payload)), nil
}

func sign(secret string, payload []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(payload)
	return h.Sum(nil)
}
