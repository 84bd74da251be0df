package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"strings"

	"github.com/MicahParks/jwkset"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrKeys is wrapped by the errors about a JWKS.
var ErrKeys = errors.New("jwt: unusable JWKS")

const (
	maxKeys    = 256
	minRSABits = 2048
)

// verifyKey is a public key of a JWKS.
type verifyKey struct {
	id     string
	alg    string // the only algorithm it may be used for; empty: every one that fits
	public any
}

// keySet is the public keys of a JWKS that can verify signatures.
type keySet struct{ keys []verifyKey }

// parseKeySet returns the usable keys of a JWKS. It skips symmetric keys, keys for encryption, and keys of an unknown kind,
// and fails if no key is left.
func parseKeySet(content []byte) (*keySet, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(content, &set, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, errors.Join(ErrKeys, errors.New("want a JSON object with an array keys"))
	}
	if len(set.Keys) > maxKeys {
		return nil, errors.Join(ErrKeys, errors.New("more than 256 keys"))
	}
	s := &keySet{}
	for _, raw := range set.Keys {
		if k, ok := parseKey(raw); ok {
			s.keys = append(s.keys, k)
		}
	}
	if len(s.keys) == 0 {
		return nil, errors.Join(ErrKeys, errors.New("no public key for signatures"))
	}
	return s, nil
}

func parseKey(raw jsontext.Value) (verifyKey, bool) {
	var m jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &m, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return verifyKey{}, false
	}
	if m.USE != "" && m.USE != jwkset.UseSig {
		return verifyKey{}, false
	}
	// Certificates are not checked, and no address in a key is dialled: the operator trusts the JWKS.
	m.X5U, m.X5C, m.X5T, m.X5TS256 = "", nil, "", ""
	parsed, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return verifyKey{}, false
	}
	k := verifyKey{id: m.KID, alg: string(m.ALG), public: parsed.Key()}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return k, public.N.BitLen() >= minRSABits && public.E >= 3
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return k, true
	}
	return verifyKey{}, false
}

// find returns the key with an ID for an algorithm. A token without an ID can use the only key that fits.
func (s *keySet) find(id, alg string) (public any, ok bool) {
	if s == nil {
		return nil, false
	}
	var found any
	for _, k := range s.keys {
		if (id != "" && k.id != id) || !k.fits(alg) {
			continue
		}
		if found != nil {
			return nil, false // which one is not clear
		}
		found = k.public
	}
	return found, found != nil
}

// fits reports whether the key can verify signatures of an algorithm.
func (k verifyKey) fits(alg string) bool {
	if k.alg != "" && k.alg != alg {
		return false
	}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return map[string]string{"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}[alg] == public.Params().Name
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}
