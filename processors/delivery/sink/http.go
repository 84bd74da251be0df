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

// HTTP calls services back by FlightDeck's contract: POST of {"result": content} to the service's CallbackPath, the
// route's token as bearer, the delivery's id as Idempotency-Key. Only services of the registry are called; redirects
// are not followed, nor is a proxy of the environment used. A 2xx is delivered; 408, 429, 5xx and everything between
// here and an answer may pass; all else is final. Connections are reused. It is safe for concurrent use; Close ends
// idle connections.
type HTTP struct {
	services Services
	timeout  time.Duration
	client   *http.Client
	now      func() time.Time
}

// HTTPOption changes what NewHTTP makes.
type HTTPOption func(*HTTP, *http.Transport)

// WithTimeout sets how long an attempt may take, from dialling to the end of the answer's body (default 30 s, as
// FlightDeck's). It must be shorter than the lease of deliveries.
func WithTimeout(d time.Duration) HTTPOption {
	return func(h *HTTP, _ *http.Transport) { h.timeout = d }
}

// WithTLS sets how services with https are met; the configuration is copied.
func WithTLS(c *tls.Config) HTTPOption {
	return func(_ *HTTP, t *http.Transport) { t.TLSClientConfig = c.Clone() }
}

const (
	defaultTimeout = 30 * time.Second
	dialTimeout    = 10 * time.Second
	// maxAnswer is how much of an answer's body is read, so that its connection can be used again.
	maxAnswer = 64 << 10
	// maxHeaders is how large an answer's headers may be.
	maxHeaders = 32 << 10
	// idlePerHost is how many connections to a service are kept for later.
	idlePerHost = 64
	idleFor     = 90 * time.Second
)

// NewHTTP makes the transport of topics.KindHTTP.
func NewHTTP(services Services, opts ...HTTPOption) *HTTP {
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConns:           16 * idlePerHost,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleFor,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true, // nobody reads what it says
	}
	h := &HTTP{services: services, timeout: defaultTimeout, now: time.Now}
	for _, opt := range opts {
		opt(h, t)
	}
	h.client = &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return h
}

// Close ends idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Deliver implements Transport.
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
		return &Failure{Reason: networkReason(err)}
	}
	defer func() { _ = response.Body.Close() }() // nothing is lost with it
	// The status has decided; the body is read for the connection's sake. A receiver that cannot end it has answered.
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	return h.judge(response)
}

func (h *HTTP) judge(response *http.Response) error {
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

// validHeader reports whether a text can be the value of a header.
func validHeader(text string) bool {
	for i := range len(text) {
		if b := text[i]; b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}

// networkReason tells errors apart without their text, which names the address.
func networkReason(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return delivery.ReasonInterrupted
	case errors.As(err, &dns):
		return "name cannot be resolved"
	case errors.As(err, &certificate), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "no TLS"
	case errors.As(err, &op) && op.Op == "dial":
		return "no connection"
	default:
		return "connection lost"
	}
}
