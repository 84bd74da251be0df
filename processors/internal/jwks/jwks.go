// Package jwks reads JSON Web Keys, and keeps those of a URL.
package jwks

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxKeys is how many keys a set may have.
	MaxKeys    = 256
	minRSABits = 2048
	// retryAfter is the shortest time between two attempts to read the keys, and readWithin how long one may take.
	retryAfter = 30 * time.Second
	readWithin = 10 * time.Second
)

// Key is a public key that can verify signatures.
type Key struct {
	ID     string
	Alg    string // the only algorithm it may be used for; empty: every one that fits
	Public any    // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// Parse reads a key. It returns false for keys for encryption, symmetric and weak ones, and those of an unknown kind. Certificates are not
// checked, and no address in a key is dialled: the operator trusts the set.
func Parse(raw jsontext.Value) (Key, bool) {
	var m jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &m, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return Key{}, false
	}
	if m.USE != "" && m.USE != jwkset.UseSig {
		return Key{}, false
	}
	m.X5U, m.X5C, m.X5T, m.X5TS256 = "", nil, "", ""
	parsed, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return Key{}, false
	}
	k := Key{ID: m.KID, Alg: string(m.ALG), Public: parsed.Key()}
	switch public := k.Public.(type) {
	case *rsa.PublicKey:
		return k, public.N.BitLen() >= minRSABits && public.E >= 3
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return k, true
	}
	return Key{}, false
}

// ErrStale says that there are no keys that may be used.
var ErrStale = errors.New("the keys cannot be read")

// Remote is the keys of a URL. It is safe for concurrent use.
type Remote[T any] struct {
	read                    func(context.Context) (*T, error)
	now                     func() time.Time
	refreshAfter, usableFor time.Duration

	turn  chan struct{} // has an element while the keys are read; guards tried
	tried time.Time
	keys  atomic.Pointer[fetched[T]]
}

type fetched[T any] struct {
	set *T
	at  time.Time
}

// NewRemote returns keys that read reads when they are first needed, when they are older than refreshAfter, and when one is missing, at most
// once in 30 seconds. Keys that cannot be read again are used for usableFor.
func NewRemote[T any](read func(context.Context) (*T, error), now func() time.Time, refreshAfter, usableFor time.Duration) *Remote[T] {
	return &Remote[T]{read: read, now: now, refreshAfter: refreshAfter, usableFor: usableFor, turn: make(chan struct{}, 1)}
}

// Get returns the keys. It reads them again if has reports that the one that is looked for is missing, or they are old. A caller that has
// found its key does not wait while another one reads them. The error is ErrStale or that of ctx.
func (r *Remote[T]) Get(ctx context.Context, has func(*T) bool) (*T, error) {
	known := r.keys.Load()
	age := r.age(known)
	switch found := known != nil && has(known.set); {
	case found && age < r.refreshAfter:
		return known.set, nil
	case found && age < r.usableFor:
		select {
		case r.turn <- struct{}{}:
		default:
			return known.set, nil
		}
	default:
		select {
		case r.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-r.turn }()
	if now := r.now(); r.tried.IsZero() || now.Sub(r.tried) >= retryAfter || now.Before(r.tried) {
		r.tried = now
		// The end of one request must not keep the keys from the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
		defer cancel()
		if set, err := r.read(ctx); err == nil {
			r.keys.Store(&fetched[T]{set, now})
		}
	}
	known = r.keys.Load()
	if known == nil || r.age(known) >= r.usableFor {
		return nil, ErrStale
	}
	return known.set, nil
}

func (r *Remote[T]) age(f *fetched[T]) time.Duration {
	if f == nil {
		return 0
	}
	return r.now().Sub(f.at)
}
