package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrAPIKeys is wrapped by the errors about the content of a file of keys.
var ErrAPIKeys = errors.New("apikey: unusable file of keys")

// keyLine is a line of the file.
type keyLine struct {
	ID       string   `json:"id"`
	Hash     string   `json:"hash"`
	User     string   `json:"user,omitempty"`
	Sessions []string `json:"sessions"`
	Rights   []string `json:"rights"`
	Expires  string   `json:"expires,omitempty"`
}

// key is a key of the file.
type key struct {
	id       string
	hash     [sha256.Size]byte
	user     string
	sessions Sessions
	rights   Rights
	expires  time.Time
	source   string // its line
}

// keyTable is the keys of a file by ID.
type keyTable map[string]*key

// parseKeys returns the keys of a file. A key whose line is also in old is the same pointer.
func parseKeys(content []byte, old keyTable) (keyTable, error) {
	keys := keyTable{}
	number := 0
	for text := range bytes.Lines(content) {
		number++
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		k, err := parseKeyLine(text)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrAPIKeys, number, err)
		}
		if keys[k.id] != nil {
			return nil, fmt.Errorf("%w: line %d: the id of an earlier line", ErrAPIKeys, number)
		}
		if before := old[k.id]; before != nil && before.source == k.source {
			k = before
		}
		keys[k.id] = k
	}
	return keys, nil
}

// parseKeyLine returns the key of a line. Its errors contain nothing of the line: it may be a key that was pasted by mistake.
func parseKeyLine(text []byte) (*key, error) {
	var l keyLine
	if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return nil, errors.New("want a JSON object with id, hash, user, sessions, rights and expires")
	}
	k := &key{id: l.ID, user: l.User, source: string(text)}
	if !validKeyID(l.ID) {
		return nil, errors.New("id: want 4 to 32 lowercase letters and digits")
	}
	digits, ok := strings.CutPrefix(l.Hash, hashPrefix)
	if n, err := hex.Decode(k.hash[:], []byte(digits[:min(len(digits), 2*sha256.Size)])); !ok || err != nil ||
		n != sha256.Size || len(digits) != 2*sha256.Size {
		return nil, errors.New("hash: want sha256: and 64 hexadecimal digits")
	}
	if strings.TrimSpace(l.User) != l.User || strings.ContainsFunc(l.User, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, errors.New("user: want printable characters")
	}
	var err error
	if k.sessions, err = ParseSessions(l.Sessions...); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	if k.sessions.OfUser() && l.User == "" {
		return nil, errors.New("sessions: a pattern has {user}, and the key has no user")
	}
	if k.rights, err = ParseRights(l.Rights...); err != nil {
		return nil, fmt.Errorf("rights: %w", err)
	}
	if l.Expires != "" {
		if k.expires, err = time.Parse(time.RFC3339, l.Expires); err != nil || k.expires.IsZero() {
			return nil, errors.New("expires: want a time of RFC 3339")
		}
	}
	return k, nil
}

const hashPrefix = "sha256:"

func validKeyID(id string) bool {
	if len(id) < 4 || len(id) > 32 {
		return false
	}
	for i := range len(id) {
		if b := id[i]; (b < 'a' || b > 'z') && (b < '0' || b > '9') {
			return false
		}
	}
	return true
}
