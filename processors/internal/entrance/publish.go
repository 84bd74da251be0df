package entrance

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// publishTimeout is how long a request waits for the acknowledgement of the brokers.
const publishTimeout = 30 * time.Second

// Publish writes the records of a request. A disconnect of the client does not cancel it: some may be written already.
func (v *Visit) Publish(to processors.Publisher, records ...processors.Outbound) *Refusal {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), publishTimeout)
	defer cancel()
	if err := to.Publish(ctx, records...); err != nil {
		return v.Unwritten(err)
	}
	return nil
}

// Unwritten refuses a request whose records may not have been written.
func (v *Visit) Unwritten(err error) *Refusal {
	if errors.Is(err, processors.ErrTooLarge) {
		return TooLarge()
	}
	c := v.entrance.config
	c.Logger.Error("request failed: its records may not have been written", zap.String("door", c.Name), zap.String("agent", c.Agent),
		zap.Error(err))
	return &Refusal{Status: http.StatusInternalServerError, Text: "Internal server error"}
}

// TooLarge refuses a request that does not fit into a record.
func TooLarge() *Refusal {
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Text: "Request is too large for a record"}
}

// IdempotencyHeader is the HTTP header with the key by which repeats of a request are recognized.
const IdempotencyHeader = "Idempotency-Key"

// maxKey is the maximum length of a key, in bytes.
const maxKey = 256

// IdempotencyKey returns the key of a request, or an empty text if it has none. ok is false if the key is too long or has characters
// that are not printable.
func IdempotencyKey(r *http.Request) (key string, ok bool) {
	key = r.Header.Get(IdempotencyHeader)
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
