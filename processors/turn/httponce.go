package turn

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

// answered is the content of a request with a key, and its answer.
type answered struct {
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
func (d *Doors) answerOnce(ctx context.Context, key, body fingerprint, try func() answer) answer {
	got, _, err := d.once.Do(ctx, key, func() (answered, bool) {
		a := try()
		return answered{body, a}, a.accepted()
	})
	switch {
	case err != nil:
		return internalError()
	case got.body != body:
		return refusal(http.StatusUnprocessableEntity, "Idempotency-Key was used for another request")
	}
	return got.answer
}

// derived returns an id that depends only on its arguments. It is the same in every process.
func derived(domain string, parts ...string) string {
	sum := fingerprintOf(domain, parts...)
	return hex.EncodeToString(sum[:digestSize])
}

func fingerprintOf(domain string, parts ...string) fingerprint {
	h := sha256.New()
	var length [8]byte
	for _, p := range append([]string{domain}, parts...) {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return fingerprint(h.Sum(nil))
}
