package platform

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/loopback"
)

const (
	// DefaultTimeout is how long a request may take unless the adapter's configuration says otherwise, from dialing to the end of
	// the response body.
	DefaultTimeout = 30 * time.Second
	// MaxResponse is how much of a response body can be read, in bytes. The response to a sent message is far smaller.
	MaxResponse = 1 << 20

	dialTimeout = 10 * time.Second
	maxHeaders  = 32 << 10
	idlePerHost = 16
	idleTimeout = 90 * time.Second
)

// Client returns a client for requests with secrets to a platform. It follows no redirects, because they would send the secret
// to a host that the operator did not name, and uses no proxy of the environment. It accepts at most 32 KiB of response headers;
// reading more than MaxResponse bytes of a body is an *http.MaxBytesError. A timeout of 0 is DefaultTimeout. The caller closes its idle
// connections. It is safe for concurrent use.
func Client(timeout time.Duration) *http.Client { return ClientUpTo(timeout, MaxResponse) }

// ClientUpTo returns a Client of which bodies of up to limit bytes can be read.
func ClientUpTo(timeout time.Duration, limit int64) *http.Client {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return &http.Client{
		Timeout: timeout,
		Transport: bounded{limit: limit, Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    dialTimeout,
			MaxIdleConns:           4 * idlePerHost,
			MaxIdleConnsPerHost:    idlePerHost,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaders,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded bounds the bodies of responses, also for libraries that read them whole.
type bounded struct {
	*http.Transport
	limit int64
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, b.limit)
	return response, nil
}

// BaseURL returns the base URL of an API without a slash at its end. It must have HTTPS, because requests carry secrets, or be of
// this host, for tests and gateways on it, and no user, query or fragment. The error does not quote the URL.
func BaseURL(text string) (string, error) {
	u, err := secureURL(text, "https", "http")
	if err != nil {
		return "", err
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// SocketURL checks the URL of a WebSocket in the same way: it must have wss, or be of this host.
func SocketURL(text string) (*url.URL, error) { return secureURL(text, "wss", "ws") }

func secureURL(text, secure, plain string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" || u.ForceQuery:
		return nil, errors.New("want a URL without a user, query and fragment")
	case u.Scheme != secure && (u.Scheme != plain || !loopback.Is(u.Hostname())):
		return nil, fmt.Errorf("want %s: anyone on the network path could read the secrets", secure)
	}
	return u, nil
}
