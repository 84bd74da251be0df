package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/internal/jwks"
)

// ErrKeys is wrapped by the errors about a JWKS.
var ErrKeys = errors.New("jwt: unusable JWKS")

// keySet is the public keys of a JWKS that can verify signatures.
type keySet struct{ keys []jwks.Key }

// parseKeySet returns the usable keys of a JWKS. It skips symmetric keys, keys for encryption, and keys of an unknown kind,
// and fails if no key is left.
func parseKeySet(content []byte) (*keySet, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(content, &set, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, errors.Join(ErrKeys, errors.New("want a JSON object with an array keys"))
	}
	if len(set.Keys) > jwks.MaxKeys {
		return nil, errors.Join(ErrKeys, errors.New("more than 256 keys"))
	}
	s := &keySet{}
	for _, raw := range set.Keys {
		if k, ok := jwks.Parse(raw); ok {
			s.keys = append(s.keys, k)
		}
	}
	if len(s.keys) == 0 {
		return nil, errors.Join(ErrKeys, errors.New("no public key for signatures"))
	}
	return s, nil
}

// find returns the key with an ID for an algorithm. A token without an ID can use the only key that fits.
func (s *keySet) find(id, alg string) (public any, ok bool) {
	if s == nil {
		return nil, false
	}
	var found any
	for _, k := range s.keys {
		if (id != "" && k.ID != id) || !fits(k, alg) {
			continue
		}
		if found != nil {
			return nil, false // which one is not clear
		}
		found = k.Public
	}
	return found, found != nil
}

// fits reports whether the key can verify signatures of an algorithm.
func fits(k jwks.Key, alg string) bool {
	if k.Alg != "" && k.Alg != alg {
		return false
	}
	switch public := k.Public.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return map[string]string{"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}[alg] == public.Params().Name
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}
