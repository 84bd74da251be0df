package sink

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/topics"
)

// HTTP is the Transport for callbacks as FlightDeck makes them: a POST of {"result": content} to the service's CallbackPath
// with the route's token as bearer token and the delivery's ID as Idempotency-Key. It calls only services of the registry.
// It follows no redirects and uses no proxy of the environment. A status of 2xx means delivered; 408, 429, 5xx and network
// errors can be retried; any other status is final. It reuses connections and is safe for concurrent use.
type HTTP struct {
	services Services
	timeout  time.Duration
	client   *http.Client
	now      func() time.Time
}

// HTTPOption sets a property of the transport that NewHTTP returns.
type HTTPOption func(*HTTP, *http.Transport)

// WithTimeout sets how long an attempt may take, from dialing to the end of the response body (default 30 s, as in
// FlightDeck). It must be shorter than the lease (delivery.Config.Lease).
func WithTimeout(d time.Duration) HTTPOption {
	return func(h *HTTP, _ *http.Transport) { h.timeout = d }
}

// WithTLS sets the TLS configuration for services with https. The configuration is cloned.
func WithTLS(c *tls.Config) HTTPOption {
	return func(_ *HTTP, t *http.Transport) { t.TLSClientConfig = c.Clone() }
}

const (
	defaultTimeout = 30 * time.Second
	dialTimeout    = 10 * time.Second
	// maxBody is how much of a response body is read, in bytes, so that its connection can be reused.
	maxBody = 64 << 10
	// maxHeaders bounds the headers of a response, in bytes.
	maxHeaders = 32 << 10
	// idlePerHost is how many idle connections to a service are kept.
	idlePerHost = 64
	idleTimeout = 90 * time.Second
)

// NewHTTP returns the transport for topics.KindHTTP. Call Close when it is no longer used.
func NewHTTP(services Services, opts ...HTTPOption) *HTTP {
	t := newTransport()
	h := &HTTP{services: services, timeout: defaultTimeout, client: clientOf(t), now: time.Now}
	for _, opt := range opts {
		opt(h, t)
	}
	return h
}

// NewClient returns a client for requests with secrets to a service that an operator named, such as another agent's door. It
// follows no redirects: they would send body and token to a host that the operator did not name. It uses no proxy of the
// environment and accepts at most 32 KiB of response headers. It has no timeout. The caller closes its idle connections.
func NewClient() *http.Client { return clientOf(newTransport()) }

func clientOf(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConns:           16 * idlePerHost,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true, // the body is discarded
	}
}

// Close closes idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Deliver implements Transport. Its error is always a *Failure.
func (h *HTTP) Deliver(ctx context.Context, d topics.Delivery) error {
	callback, ok := h.services.CallbackURL(d.Route.Service)
	if !ok {
		return &Failure{Reason: delivery.ReasonUnknownService, Final: true}
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, callback, bytes.NewReader(CallbackBody(d)))
	if err != nil {
		return &Failure{Reason: "request cannot be made", Final: true}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", d.DeliveryID)
	if d.Token != nil && strings.TrimSpace(*d.Token) != "" {
		if !validHeader(*d.Token) {
			return &Failure{Reason: "token cannot be sent", Final: true}
		}
		r.Header.Set("Authorization", "Bearer "+*d.Token)
	}
	response, err := h.client.Do(r)
	if err != nil {
		return &Failure{Reason: NetworkReason(err)}
	}
	defer func() { _ = response.Body.Close() }() // the status is the result; an error here changes nothing
	// Read the body only so that the connection can be reused.
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	return h.result(response)
}

// result returns nil for a status of 2xx, or else the failure.
func (h *HTTP) result(response *http.Response) error {
	code := response.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	f := &Failure{Reason: "status " + strconv.Itoa(code), Status: code}
	switch {
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		f.RetryAfter = ParseRetryAfter(response.Header.Get("Retry-After"), h.now())
	default:
		f.Final = true
	}
	return f
}

// The reasons of network errors. An error of the client's context that was cancelled has the reason
// delivery.ReasonInterrupted.
const (
	ReasonTimeout        = topics.ReasonTimeout
	ReasonNoName         = "name cannot be resolved"
	ReasonNoTLS          = "no TLS"
	ReasonNoConnection   = "no connection"
	ReasonConnectionLost = "connection lost" // the receiver may have handled the request
)

// validHeader reports whether a text is valid as the value of an HTTP header.
func validHeader(text string) bool {
	for i := range len(text) {
		if b := text[i]; b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}

// NetworkReason returns the Reason of a Failure for an error of an HTTP client, for transports of other packages. The text of
// such an error contains the address, so it must not be used. See the constants ReasonTimeout and following.
func NetworkReason(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ReasonTimeout
	case errors.Is(err, context.Canceled):
		return delivery.ReasonInterrupted
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
