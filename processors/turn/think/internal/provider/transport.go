package provider

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxResponse bounds the body of a response, in bytes.
const maxResponse = 16 << 20

// observed is what the transport saw of an attempt.
type observed struct {
	touch func() // called when the provider sent something

	mu      sync.Mutex
	status  int
	after   time.Duration
	request string
	broken  bool // the body could not be read to its end
	last    []byte
}

// finished reports whether the stream has the data [DONE] at its end.
func (o *observed) finished() bool { return bytes.HasSuffix(bytes.TrimSpace(o.last), []byte("[DONE]")) }

// lastBytes is how much of the end of a body is kept.
const lastBytes = 16

type observedKey struct{}

// measured is a transport that records responses in the observed of the request's context, and bounds their bodies.
type measured struct{ next *http.Transport }

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(r)
	o, ok := r.Context().Value(observedKey{}).(*observed)
	if err != nil || !ok {
		return response, err
	}
	o.mu.Lock()
	o.status, o.after = response.StatusCode, retryAfter(response.Header, time.Now())
	for _, name := range []string{"request-id", "x-request-id"} {
		if id := response.Header.Get(name); id != "" {
			o.request = id
			break
		}
	}
	o.mu.Unlock()
	o.touch()
	response.Body = &body{ReadCloser: http.MaxBytesReader(nil, response.Body, maxResponse), observed: o}
	return response, nil
}

// CloseIdleConnections is called by http.Client.
func (m measured) CloseIdleConnections() { m.next.CloseIdleConnections() }

// body is the body of a response.
type body struct {
	io.ReadCloser
	observed *observed
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.observed.touch()
		b.observed.mu.Lock()
		end := append(b.observed.last, p[max(n-lastBytes, 0):n]...)
		b.observed.last = end[max(len(end)-lastBytes, 0):]
		b.observed.mu.Unlock()
	}
	var tooLong *http.MaxBytesError
	if err != nil && err != io.EOF && !errors.As(err, &tooLong) {
		b.observed.mu.Lock()
		b.observed.broken = true
		b.observed.mu.Unlock()
	}
	return n, err
}

// maxAfter bounds how long a provider can ask to wait.
const maxAfter = time.Hour

// retryAfter returns how long a response asks to wait; 0 if it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 {
		return bounded(ms * float64(time.Millisecond))
	}
	text := strings.TrimSpace(h.Get("retry-after"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return bounded(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return bounded(float64(at.Sub(now)))
	}
	return 0
}

func bounded(d float64) time.Duration { return time.Duration(min(d, float64(maxAfter))) }
