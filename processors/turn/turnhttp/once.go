package turnhttp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"unicode"
	"unicode/utf8"
)

// idempotencyHeader is the HTTP header with the key by which repeats of a request are deduplicated.
const idempotencyHeader = "Idempotency-Key"

// maxKey is the maximum length of a key, in bytes.
const maxKey = 256

// fingerprint is a hash of a key, or of the content of a request.
type fingerprint = [sha256.Size]byte

// remembered is the content of a request with a key, and its answer.
type remembered struct {
	body   fingerprint
	answer answer
}

// idempotencyKey returns the key of a request, or an empty text if it has none. ok is false if the key is too long or has
// characters that are not printable.
func idempotencyKey(r *http.Request) (key string, ok bool) {
	key = r.Header.Get(idempotencyHeader)
	if len(key) > maxKey || !utf8.ValidString(key) {
		return "", false
	}
	for _, c := range key {
		if !unicode.IsPrint(c) {
			return "", false
		}
	}
	return key, true
}

// answerOnce returns the remembered answer of a key, or calls try. Only accepted answers are remembered, so a failed request
// can be retried with the same key. The same key with a different body is answered with 422.
func (h *Handler) answerOnce(ctx context.Context, key, body fingerprint, try func() answer) answer {
	got, _, err := h.once.Do(ctx, key, func() (remembered, bool) {
		a := try()
		return remembered{body, a}, a.accepted()
	})
	switch {
	case err != nil:
		return internalError()
	case got.body != body:
		return errorAnswer(http.StatusUnprocessableEntity, "Idempotency-Key was used for another request")
	}
	return got.answer
}

// derivedBytes is the number of hash bytes in a derived id.
const derivedBytes = 16

// derived returns an id that depends only on its arguments. It is the same in every process.
func derived(domain string, parts ...string) string {
	sum := fingerprintOf(domain, parts...)
	return hex.EncodeToString(sum[:derivedBytes])
}

func fingerprintOf(domain string, parts ...string) fingerprint {
	hash := sha256.New()
	var length [8]byte
	for _, p := range append([]string{domain}, parts...) {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		hash.Write(length[:])
		hash.Write([]byte(p))
	}
	return fingerprint(hash.Sum(nil))
}
