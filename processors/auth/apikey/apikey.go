package apikey

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// Prefix is how every key begins.
const Prefix = "tt_"

// Keys authenticates callers by the keys of a file. It is safe for concurrent use, starts no goroutine, and need not be
// closed.
type Keys struct {
	file  *reload.Value[table]
	clock auth.Clock
}

// Option configures Open.
type Option func(*options)

type options struct {
	clock  auth.Clock
	logger *zap.Logger
}

// WithClock sets the clock by which keys expire and the file is read again (default: the system clock). It must
// not be nil.
func WithClock(c auth.Clock) Option { return func(o *options) { o.clock = c } }

// WithLogger sets the logger for changes of the file (default: none). Keys and lines are not logged. It must not
// be nil.
func WithLogger(l *zap.Logger) Option { return func(o *options) { o.logger = l } }

// Open reads a file of keys. Its error wraps ErrFile for an invalid line, and otherwise says why the file cannot be read.
// A file without keys is valid and accepts no one.
func Open(path string, opts ...Option) (*Keys, error) {
	o := options{clock: clock.System(), logger: zap.NewNop()}
	for _, opt := range opts {
		opt(&o)
	}
	if o.clock == nil || o.logger == nil {
		return nil, errors.New("apikey: WithClock and WithLogger: want a value that is not nil")
	}
	file, err := reload.Open(parseFile, o.clock.Now, o.logger, path)
	if err != nil {
		return nil, fmt.Errorf("apikey: open keys: %w", err)
	}
	return &Keys{file: file, clock: o.clock}, nil
}

func parseFile(contents [][]byte, old *table) (*table, error) {
	var before table
	if old != nil {
		before = *old
	}
	keys, err := parse(contents[0], before)
	return &keys, err
}

// Authenticate returns the caller of a request with a key. It is an auth.Authenticate. Its error wraps
// auth.ErrNoCredential if the request has no bearer token that begins with Prefix, and auth.ErrRejected if the key is
// malformed, unknown, wrong or expired. It does not say which.
func (k *Keys) Authenticate(r *http.Request) (auth.Caller, error) {
	token, err := auth.Bearer(r)
	if err != nil {
		return auth.Caller{}, fmt.Errorf("apikey: %w", err)
	}
	if !strings.HasPrefix(token, Prefix) {
		return auth.Caller{}, fmt.Errorf("apikey: %w", auth.ErrNoCredential)
	}
	id, secret, ok := split(token)
	found := (*k.file.Get())[id]
	if !ok || found == nil || !found.opens(secret) || !found.expires.IsZero() && !k.clock.Now().Before(found.expires) {
		return auth.Caller{}, fmt.Errorf("apikey: %w", auth.ErrRejected)
	}
	return auth.Caller{
		UserID: found.user, Subject: "key:" + found.id, MayUse: found.sessions.For(found.user), Rights: found.rights,
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

// split returns the parts of a key.
func split(token string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(token, Prefix)
	id, secret, cut := strings.Cut(rest, "_")
	return id, secret, ok && cut && validID(id) && len(secret) == secretLength
}

// Holder describes the owner of a key.
type Holder struct {
	// User is the caller's user, or empty.
	User string
	// Sessions are patterns of auth.ParseSessions, at least one.
	Sessions []string
	// Rights must not be zero.
	Rights auth.Rights
	// Expires is when the key expires, in seconds. Zero means never.
	Expires time.Time
}
