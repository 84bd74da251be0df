package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// tolerance is how far the timestamp of a request may be from this host's clock, in both directions.
const tolerance = 5 * time.Minute

// signed reports whether a request has one valid signature and a recent timestamp.
func (a *Adapter) signed(h http.Header, body []byte) bool {
	const version = "v0"
	at, signature := h.Values("X-Slack-Request-Timestamp"), h.Values("X-Slack-Signature")
	if len(at) != 1 || len(signature) != 1 || !platform.Recent(at[0], a.now(), tolerance) {
		return false
	}
	for _, secret := range a.config.SigningSecrets {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(version + ":" + at[0] + ":")) // a hash returns no error
		_, _ = mac.Write(body)
		if hmac.Equal([]byte(version+"="+hex.EncodeToString(mac.Sum(nil))), []byte(signature[0])) {
			return true
		}
	}
	return false
}
