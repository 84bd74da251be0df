package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// Rejection is the reason why a token is rejected. It is the error text that the callback door sends to its client. It does
// not quote the token.
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
	// OtherAgent is returned only by a Verifier of For. FlightDeck does not check the agent.
	OtherAgent Rejection = "Token is for another agent"
)

// Verifier verifies tokens. It is immutable and safe for concurrent use. The zero value has no secret.
type Verifier struct {
	secrets []string
	agent   string
}

// NewVerifier returns a Verifier that accepts tokens signed with any of the secrets. To rotate a secret, pass the old and
// the new one until all tokens signed with the old one have expired. Blank secrets are ignored. Without a secret, every
// token is rejected.
func NewVerifier(secrets ...string) Verifier {
	var v Verifier
	for _, s := range secrets {
		if strings.TrimSpace(s) != "" {
			v.secrets = append(v.secrets, s)
		}
	}
	return v
}

// For returns a Verifier that accepts only tokens for calls of one agent, so that agents that share a secret cannot answer
// each other's calls. Tokens without an agent are rejected.
func (v Verifier) For(agent string) Verifier {
	v.agent = agent
	return v
}

// Configured reports whether the Verifier has a secret.
func (v Verifier) Configured() bool { return len(v.secrets) > 0 }

// Verify verifies a token at the time now and returns its claims. Its error is a Rejection. Signatures are compared in
// constant time, with all secrets, so the duration reveals neither a secret nor which of them matched.
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
		// No break: the duration must not depend on which secret matches.
		if hmac.Equal(mac, sign(secret, payload)) {
			good = true
		}
	}
	return good && len(mac) == sha256.Size
}

// decode decodes base64url with or without padding. It rejects line ends, which Go's decoder would ignore.
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
