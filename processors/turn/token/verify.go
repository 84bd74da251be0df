package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// Rejection is why a token is refused, in the words of the callback door's answer. A caller may be told: none quotes
// the token.
type Rejection string

// Error implements error.
func (r Rejection) Error() string { return "token: " + string(r) }

// The rejections, in the order in which a token is checked.
const (
	Missing       Rejection = "Missing token"
	NotConfigured Rejection = "Server is not configured to verify callback tokens"
	Malformed     Rejection = "Malformed token"
	NotBase64     Rejection = "Token is not valid base64url"
	BadSignature  Rejection = "Bad token signature"
	NotJSON       Rejection = "Token payload is not valid JSON"
	Expired       Rejection = "Token has expired"
	NoCall        Rejection = "Token missing session_id or tool_use_id"
	// OtherAgent is about tokens that are bound to an agent, which FlightDeck does not check.
	OtherAgent Rejection = "Token is for another agent"
)

// Verifier checks tokens. It is a value, safe for concurrent use.
type Verifier struct {
	secrets []string
	agent   string
}

// NewVerifier takes the secrets that are good, of which the first is usually the one that tokens are minted with: with
// the old and the new one both here, a secret is changed without refusing tokens that are out. Blank ones do not count;
// with none, every token is refused.
func NewVerifier(secrets ...string) Verifier {
	var v Verifier
	for _, s := range secrets {
		if strings.TrimSpace(s) != "" {
			v.secrets = append(v.secrets, s)
		}
	}
	return v
}

// For is a verifier that takes tokens of one agent's calls only: two agents that share a secret cannot answer each
// other's calls. Tokens that name no agent are refused.
func (v Verifier) For(agent string) Verifier {
	v.agent = agent
	return v
}

// Configured reports whether there is a secret.
func (v Verifier) Configured() bool { return len(v.secrets) > 0 }

// Verify checks a token at a time and returns what it says. Its error is a Rejection. How long it takes tells nothing
// of a secret, nor which of several it was.
func (v Verifier) Verify(token string, now time.Time) (Claims, error) {
	if strings.TrimSpace(token) == "" {
		return Claims{}, Missing
	}
	if len(v.secrets) == 0 {
		return Claims{}, NotConfigured
	}
	first, second, found := strings.Cut(token, ".")
	if !found || first == "" || second == "" {
		return Claims{}, Malformed
	}
	payload, ok := decode(first)
	if !ok {
		return Claims{}, NotBase64
	}
	mac, ok := decode(second)
	if !ok {
		return Claims{}, NotBase64
	}
	if !v.signed(payload, mac) {
		return Claims{}, BadSignature
	}
	p, ok := read(payload)
	if !ok {
		return Claims{}, NotJSON
	}
	switch {
	case p.exp > 0 && now.Unix() > p.exp:
		return Claims{}, Expired
	case p.session == nil || p.toolUse == nil:
		return Claims{}, NoCall
	case v.agent != "" && (p.agent == nil || *p.agent != v.agent):
		return Claims{}, OtherAgent
	}
	return p.claims(), nil
}

func (v Verifier) signed(payload, mac []byte) bool {
	good := false
	for _, secret := range v.secrets {
		// All of them, always.
		if hmac.Equal(mac, sign(secret, payload)) {
			good = true
		}
	}
	return good && len(mac) == sha256.Size
}

// decode reads base64url, padded or not. Go's decoder passes over line ends.
func decode(half string) ([]byte, bool) {
	encoding := base64.RawURLEncoding
	if strings.HasSuffix(half, "=") {
		encoding = base64.URLEncoding
	}
	if strings.ContainsAny(half, "\r\n") {
		return nil, false
	}
	b, err := encoding.DecodeString(half)
	return b, err == nil
}
