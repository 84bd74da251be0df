package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
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
	// NoExpiry is returned unless AllowNoExpiry. FlightDeck accepts such tokens.
	NoExpiry Rejection = "Token has no expiry"
	NoCall   Rejection = "Token missing session_id or tool_use_id"
	// OtherAgent is returned only by a Verifier of For. FlightDeck does not check the agent.
	OtherAgent Rejection = "Token is for another agent"
)

// Verifier verifies tokens. It is immutable and safe for concurrent use. The zero value has no secret.
type Verifier struct {
	keys     []key
	agent    string
	noExpiry bool
}

// NewVerifier returns a Verifier that accepts tokens signed with any of the secrets. A token with the ID of a secret is
// verified with that secret, any other with all of them. Blank secrets are ignored. Without a secret, every token is rejected.
// A secret shorter than MinSecret is an error that wraps ErrSecret and does not quote it.
//
// To rotate a secret, first add the new one here, then sign with it, and remove the old one when all tokens signed with it have
// expired.
func NewVerifier(secrets ...string) (Verifier, error) {
	var v Verifier
	for i, s := range secrets {
		if strings.TrimSpace(s) == "" {
			continue
		}
		k, err := newKey(s)
		if err != nil {
			return Verifier{}, fmt.Errorf("secret %d: %w", i+1, err)
		}
		v.keys = append(v.keys, k)
	}
	return v, nil
}

// NewShortVerifier is NewVerifier without the minimum length of a secret: FlightDeck has none. Who has one token can try out short
// secrets, and then sign results for every call.
func NewShortVerifier(secrets ...string) Verifier {
	var v Verifier
	for _, s := range secrets {
		if strings.TrimSpace(s) != "" {
			v.keys = append(v.keys, key{s, keyID(s)})
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

// AllowNoExpiry returns a Verifier that also accepts tokens that never expire. FlightDeck accepts them; its dispatcher does not
// mint them. A reader of such a token can use it until its secret is removed.
func (v Verifier) AllowNoExpiry() Verifier {
	v.noExpiry = true
	return v
}

// Configured reports whether the Verifier has a secret.
func (v Verifier) Configured() bool { return len(v.keys) > 0 }

// maxToken is the maximum length of a token, in bytes. It bounds what a sender without a secret can have decoded.
const maxToken = 64 << 10

// Verify verifies a token at the time now and returns its claims. Its error is a Rejection. Signatures are compared in
// constant time, with all secrets that the token may be signed with, so the duration reveals no secret.
func (v Verifier) Verify(token string, now time.Time) (Claims, error) {
	if strings.TrimSpace(token) == "" {
		return Claims{}, Missing
	}
	if len(v.keys) == 0 {
		return Claims{}, NotConfigured
	}
	first, second, found := strings.Cut(token, ".")
	if !found || first == "" || second == "" || len(token) > maxToken {
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
	p, ok := read(payload) // not trusted before the signature is verified; it names the secret
	if !v.signed(payload, mac, p.kid) {
		return Claims{}, BadSignature
	}
	switch {
	case !ok:
		return Claims{}, NotJSON
	case p.exp > 0 && now.Unix() > p.exp:
		return Claims{}, Expired
	case p.exp <= 0 && !v.noExpiry:
		return Claims{}, NoExpiry
	case p.session == nil || p.toolUse == nil:
		return Claims{}, NoCall
	case v.agent != "" && (p.agent == nil || *p.agent != v.agent):
		return Claims{}, OtherAgent
	}
	return p.claims(), nil
}

// signed reports whether the MAC of a payload is that of the secret with the ID kid, or of any secret if kid is nil.
func (v Verifier) signed(payload, mac []byte, kid *string) bool {
	good := false
	for _, k := range v.keys {
		if kid != nil && *kid != k.id {
			continue
		}
		// No break: the duration must not depend on which secret matches.
		if hmac.Equal(mac, sign(k.secret, payload)) {
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
