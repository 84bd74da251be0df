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

// ErrMint is wrapped by what Mint refuses.
var ErrMint = errors.New("token: cannot be minted")

// Mint makes the token of a tool call. Equal arguments make equal tokens. The secret is not blank and is the one that
// the callback door knows.
func Mint(secret string, c Claims) (string, error) {
	if strings.TrimSpace(secret) == "" {
		return "", fmt.Errorf("%w: no secret", ErrMint)
	}
	if c.TotalTools < 0 || c.TotalTools > math.MaxInt32 {
		return "", fmt.Errorf("%w: %d tools", ErrMint, c.TotalTools)
	}
	// The call would be answered under another id.
	if !utf8.ValidString(c.SessionID) || !utf8.ValidString(c.ToolUseID) {
		return "", fmt.Errorf("%w: session or tool_use_id is not UTF-8", ErrMint)
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
