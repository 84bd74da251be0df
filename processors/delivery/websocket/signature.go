package websocket

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const (
	// minResumeKey is the minimum length of a resume key, in bytes.
	minResumeKey = 32
	// signatureBytes is how much of the HMAC-SHA256 an event ID has.
	signatureBytes = 16
)

// signer signs the event IDs of an agent, because a client that resumes makes the server read what its event ID names.
//
//	{event ID}~{signature}
type signer struct {
	agent string
	keys  [][]byte // the first one signs; at least one
}

// newSigner returns a signer. Without keys it has a random one.
func newSigner(agent string, keys [][]byte) signer {
	if len(keys) == 0 {
		key := make([]byte, minResumeKey)
		_, _ = rand.Read(key) // never fails
		keys = [][]byte{key}
	}
	return signer{agent, keys}
}

// sign returns an event ID of a session with its signature.
func (s signer) sign(session, id string) string {
	return id + "~" + s.signature(s.keys[0], session, id)
}

// verify returns an event ID of a session without its signature; ok is false if no key has signed it.
func (s signer) verify(session, signed string) (id string, ok bool) {
	i := strings.LastIndexByte(signed, '~')
	if i < 0 || len(signed) > maxEventID {
		return "", false
	}
	id = signed[:i]
	for _, key := range s.keys {
		if hmac.Equal([]byte(s.signature(key, session, id)), []byte(signed[i+1:])) {
			return id, true
		}
	}
	return "", false
}

func (s signer) signature(key []byte, session, id string) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{s.agent, session, id} {
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:signatureBytes])
}
