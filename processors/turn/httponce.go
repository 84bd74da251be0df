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

// idempotencyHeader names a request: what is sent again under the same key is done once.
const idempotencyHeader = "Idempotency-Key"

// maxKey is how long a key may be, in bytes.
const maxKey = 256

// fingerprint stands for a key, or for what a request asked for.
type fingerprint = [sha256.Size]byte

// answered is what a request with a key asked for, and what it was answered.
type answered struct {
	body   fingerprint
	answer answer
}

// idempotencyKey is the key of a request, empty where it has none.
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

// answerOnce answers a request with a key. One that was not accepted may be tried again.
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

// derived is an id that follows from what it is given, the same in every process.
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
