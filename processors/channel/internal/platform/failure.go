package platform

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// The reasons of network errors. They are the ones of the sink's HTTP transport.
const (
	ReasonTimeout        = topics.ReasonTimeout
	ReasonInterrupted    = topics.ReasonInterrupted // the context of the request was cancelled
	ReasonNoName         = "name cannot be resolved"
	ReasonNoTLS          = "no TLS"
	ReasonNoConnection   = "no connection"
	ReasonConnectionLost = "connection lost" // the platform may have handled the request
)

// Reason returns the reason of an error of an HTTP client. The text of such an error contains the address, and with it, for some
// platforms, the token, so it must not be used.
func Reason(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ReasonTimeout
	case errors.Is(err, context.Canceled):
		return ReasonInterrupted
	case errors.As(err, &dns):
		return ReasonNoName
	case errors.As(err, &certificate), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return ReasonNoTLS
	case errors.As(err, &op) && op.Op == "dial":
		return ReasonNoConnection
	default:
		return ReasonConnectionLost
	}
}

// Failure returns the failure for an error of an HTTP client, which can be retried.
func Failure(err error) *adapter.Failure { return &adapter.Failure{Reason: Reason(err)} }

// StatusFailure returns the failure for an HTTP status, nil for 2xx. 408, 425, 429 and 5xx can be retried, not before the time of the
// header Retry-After. 401 can be retried too: the token is wrong or has expired, which is for the operator to repair, and the
// message is fine. Every other status is final, redirects included: they are not followed.
func StatusFailure(code int, header http.Header, now time.Time) *adapter.Failure {
	if code >= 200 && code < 300 {
		return nil
	}
	f := &adapter.Failure{Reason: "status " + strconv.Itoa(code), Status: code}
	switch {
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		f.RetryAfter = RetryAfter(header.Get("Retry-After"), now)
	case code == http.StatusUnauthorized:
	default:
		f.Final = true
	}
	return f
}

// Explain adds the platform's code of an error to a failure. An answer without one is not the platform's, but that of a proxy or a
// wrong address, which the operator can repair: after 403 and 404 the message is sent again.
func Explain(f *adapter.Failure, code string) {
	switch {
	case code != "":
		f.Reason += ", " + adapter.Code(code)
	case f.Status == http.StatusForbidden, f.Status == http.StatusNotFound:
		f.Final = false
	}
}
