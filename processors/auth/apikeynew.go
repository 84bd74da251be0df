package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// NewAPIKey returns a random key for a holder, and the line to append to the file of keys, without a line break. Only the key is
// secret. Its error wraps ErrAPIKeys if the holder's fields are not valid in a line.
func NewAPIKey(h APIKeyHolder) (key, fileLine string, err error) {
	var id [8]byte
	var secret [secretLength / 2]byte
	_, _ = rand.Read(id[:]) // never fails
	_, _ = rand.Read(secret[:])
	name, text := hex.EncodeToString(id[:]), hex.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(text))
	l := keyLine{
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
		return "", "", fmt.Errorf("%w: %w", ErrAPIKeys, err)
	}
	if _, err := parseKeyLine(b); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrAPIKeys, err)
	}
	return APIKeyPrefix + name + "_" + text, string(b), nil
}

var _ Authenticate = (*APIKeys)(nil).Authenticate
