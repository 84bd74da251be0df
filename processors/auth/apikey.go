package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// APIKeyPrefix is how every key begins.
const APIKeyPrefix = "tt_"

// APIKeys authenticates callers by API keys, whose hashes are in a file. It is safe for concurrent use, starts no goroutine,
// and need not be closed.
//
//	Authorization: Bearer tt_4f9a01c2d37be865_<64 hexadecimal digits>
//
// # The file
//
// Each line of the file is a JSON object. Blank lines, and lines that begin with #, are ignored:
//
//	{"id":"4f9a01c2d37be865","hash":"sha256:<64 hexadecimal digits>","user":"mira","sessions":["{user}:*"],"rights":["read","write"],"expires":"2027-01-01T00:00:00Z"}
//
//	member    meaning
//	id        4 to 32 lowercase letters and digits; names the key in logs
//	hash      SHA-256 of the secret, which is the part of the key after the second _
//	user      optional: the caller's user; without it, a message may name its user
//	sessions  the sessions that the key may use: patterns of ParseSessions
//	rights    names of ParseRights
//	expires   optional: when the key expires, as RFC 3339
//
// The file contains no secret. A secret is 32 random bytes, so it cannot be guessed from its hash. Slow hashes such as
// bcrypt protect weak passwords; here they would only let unauthenticated requests cost CPU time.
//
// # A new key
//
// NewAPIKey makes a key and its line. So does a shell; the key is shown once, and only its hash is stored:
//
//	id=$(openssl rand -hex 8) secret=$(openssl rand -hex 32)
//	hash=$(printf %s "$secret" | openssl dgst -sha256 -r | cut -d ' ' -f 1)
//	echo '{"id":"'$id'","hash":"sha256:'$hash'","user":"mira","sessions":["{user}:*"],"rights":["read","write"]}' >> keys
//	echo "tt_${id}_$secret"
//
// # Changes
//
// The file is read again when it has changed, at most once a second and only while there are requests, streams or sockets.
// A file that cannot be read or has an invalid line changes nothing: the former keys stay in use, and the reason is logged
// with the line's number, without its content. A key whose line was changed or removed is revoked: its streams and sockets
// end within about 10 s. An empty file revokes all keys. Write a new file and rename it, or append complete lines.
type APIKeys struct {
	file  *reload.Value[keyTable]
	clock Clock
}

// APIKeyConfig configures OpenAPIKeys. The zero value is ready for use.
type APIKeyConfig struct {
	// Clock is the clock by which keys expire and the file is read again. The default is the system clock.
	Clock Clock
	// Logger logs changes of the file, without keys and lines. The default logs nothing.
	Logger *zap.Logger
}

// OpenAPIKeys reads a file of keys. Its error wraps ErrAPIKeys for an invalid line, and otherwise says why the file cannot be read.
// A file without keys is valid and accepts no one.
func OpenAPIKeys(path string, c APIKeyConfig) (*APIKeys, error) {
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	file, err := reload.Open(parseKeyFile, c.Clock.Now, c.Logger, path)
	if err != nil {
		return nil, fmt.Errorf("apikey: open keys: %w", err)
	}
	return &APIKeys{file: file, clock: c.Clock}, nil
}

func parseKeyFile(contents [][]byte, old *keyTable) (*keyTable, error) {
	var before keyTable
	if old != nil {
		before = *old
	}
	keys, err := parseKeys(contents[0], before)
	return &keys, err
}

// Authenticate returns the caller of a request with a key. It is an Authenticate. Its error wraps
// ErrNoCredential if the request has no bearer token that begins with APIKeyPrefix, and ErrRejected if the key is
// malformed, unknown, wrong or expired. It does not say which. With ErrRejected, the Caller has the key's ID.
func (k *APIKeys) Authenticate(r *http.Request) (Caller, error) {
	token, err := Bearer(r)
	if err != nil {
		return Caller{}, fmt.Errorf("apikey: %w", err)
	}
	if !strings.HasPrefix(token, APIKeyPrefix) {
		return Caller{}, fmt.Errorf("apikey: %w", ErrNoCredential)
	}
	id, secret, ok := splitKey(token)
	found := (*k.file.Get())[id]
	subject := "key:" + id
	switch {
	case !ok:
		return Caller{}, fmt.Errorf("apikey: %w", ErrRejected)
	case found == nil, !found.opens(secret), !found.expires.IsZero() && !k.clock.Now().Before(found.expires):
		return Caller{Subject: subject}, fmt.Errorf("apikey: %w", ErrRejected)
	}
	return Caller{
		UserID: found.user, Subject: subject, MayUse: found.sessions.For(found.user), Rights: found.rights,
		Expires: found.expires,
		Revoked: func() bool { return (*k.file.Get())[found.id] != found },
	}, nil
}

// opens compares the hashes in constant time. Which IDs exist is no secret.
func (k *key) opens(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(sum[:], k.hash[:]) == 1
}

// secretLength is that of 32 bytes as hexadecimal digits.
const secretLength = 64

// splitKey returns the parts of a key.
func splitKey(token string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(token, APIKeyPrefix)
	id, secret, cut := strings.Cut(rest, "_")
	return id, secret, ok && cut && validKeyID(id) && len(secret) == secretLength
}

// APIKeyHolder describes the owner of a key.
type APIKeyHolder struct {
	// User is the caller's user, or empty.
	User string
	// Sessions are patterns of ParseSessions, at least one.
	Sessions []string
	// Rights must not be zero.
	Rights Rights
	// Expires is when the key expires, in seconds. Zero means never.
	Expires time.Time
}
