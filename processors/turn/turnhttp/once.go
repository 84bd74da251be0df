package turnhttp

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// fingerprint identifies a key, or the content of a request.
type fingerprint = digests.Digest

// remembered is the content of a request with a key, and its answer.
type remembered struct {
	body   fingerprint
	answer answer
}

// answerOnce returns the remembered answer of a key, or calls try. Only accepted answers are remembered, so a failed request
// can be retried with the same key. The same key with a different body is answered with 422.
func (h *Handler) answerOnce(ctx context.Context, key, body fingerprint, try func() answer) answer {
	got, _, err := h.once.Do(ctx, key, func() (remembered, bool) {
		a := try()
		return remembered{body, a}, accepted(a)
	})
	switch {
	case err != nil:
		return entrance.Internal()
	case got.body != body:
		return entrance.Failed(http.StatusUnprocessableEntity, "Idempotency-Key was used for another request")
	}
	return got.answer
}

// derived returns an ID that depends only on its arguments. It is the same in every process.
func derived(parts ...string) string {
	d := fingerprintOf(parts...)
	return hex.EncodeToString(d[:])
}

func fingerprintOf(parts ...string) fingerprint { return digests.Of("", parts...) }
