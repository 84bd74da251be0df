package webhook

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

const (
	// tolerance is how far a timestamp may be from this host's clock, in both directions.
	tolerance  = 5 * time.Minute
	maxSecrets = 8
	// maxSignatures bounds the header webhook-signature, in bytes: more than 20 signatures.
	maxSignatures = 2 << 10
	// maxID bounds IDs in bytes.
	maxID = 256

	prefix       = "whsec_"
	minKey       = 24
	maxKey       = 64
	maxTimestamp = 20
)

// keys are the secrets of one direction.
type keys []*standardwebhooks.Webhook

// newKeys returns the secrets of a field of the configuration.
func newKeys(check *platform.Check, field string, secrets []string) (k keys) {
	if len(secrets) == 0 || len(secrets) > maxSecrets {
		check.Wrong(field, "are %d secrets, want 1 to %d", len(secrets), maxSecrets)
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(secret, prefix))
		webhook, failed := standardwebhooks.NewWebhookRaw(key)
		if err != nil || failed != nil || len(key) < minKey || len(key) > maxKey {
			check.Wrong(field, "have one that is not the Base64 of %d to %d bytes", minKey, maxKey)
		}
		k = append(k, webhook)
	}
	return k
}

// valid reports whether a request is signed with one of the secrets, and lately. The library compares in constant time. It would
// compare timestamps with the system clock, so that is done here.
func (k keys) valid(h http.Header, body []byte, now time.Time) bool {
	for _, name := range []string{
		standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	} {
		if len(h.Values(name)) != 1 {
			return false // which of several was signed is not clear
		}
	}
	id, at := h.Get(standardwebhooks.HeaderWebhookID), h.Get(standardwebhooks.HeaderWebhookTimestamp)
	if id == "" || len(id) > maxID || len(at) > maxTimestamp || len(h.Get(standardwebhooks.HeaderWebhookSignature)) > maxSignatures {
		return false
	}
	return platform.Recent(at, now, tolerance) &&
		slices.ContainsFunc(k, func(w *standardwebhooks.Webhook) bool { return w.VerifyIgnoringTimestamp(body, h) == nil })
}

// sign adds the headers of the scheme to a request, with a signature of each secret.
func (k keys) sign(h http.Header, id string, body []byte, now time.Time) error {
	signatures := make([]string, 0, len(k))
	for _, webhook := range k {
		s, err := webhook.Sign(id, now, body)
		if err != nil {
			return err
		}
		signatures = append(signatures, s)
	}
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}
