package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/auth"
)

// New returns a random key for a holder, and the line to append to the file of keys, without a line break. Only the key is
// secret. Its error wraps ErrFile if the holder's fields are not valid in a line.
func New(h Holder) (key, fileLine string, err error) {
	var id [8]byte
	var secret [secretLength / 2]byte
	_, _ = rand.Read(id[:]) // never fails
	_, _ = rand.Read(secret[:])
	name, text := hex.EncodeToString(id[:]), hex.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(text))
	l := line{
		ID: name, Hash: hashPrefix + hex.EncodeToString(sum[:]), User: h.User, Sessions: h.Sessions,
	}
	if h.Rights != 0 {
		l.Rights = strings.Split(h.Rights.String(), ",")
	}
	if !h.Expires.IsZero() {
		l.Expires = h.Expires.UTC().Format(time.RFC3339)
	}
	b, err := json.Marshal(l, json.Deterministic(true))
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrFile, err)
	}
	if _, err := parseLine(b); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrFile, err)
	}
	return Prefix + name + "_" + text, string(b), nil
}

var _ auth.Authenticate = (*Keys)(nil).Authenticate
