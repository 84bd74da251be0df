// Package providertest tests the model adapters against loopback servers that respond as the providers document.
package providertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// API is a server that gives prepared answers in order, and repeats the last one.
type API struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []Answer
	requests []Request
	release  chan struct{}
}

// Answer is a response. With Hang the server does not end it, with Break it closes the connection after the body.
type Answer struct {
	Status  int
	Headers map[string]string
	Body    string
	Hang    bool
	Break   bool
}

// Request is a request that the server received.
type Request struct {
	Path   string
	Header http.Header
	Body   string
}

// Start starts a server that stops with the test.
func Start(tb testing.TB, answers ...Answer) *API {
	tb.Helper()
	a := &API{answers: answers, release: make(chan struct{})}
	a.Server = httptest.NewServer(a)
	tb.Cleanup(func() {
		close(a.release)
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	a.requests = append(a.requests, Request{Path: r.Method + " " + r.URL.RequestURI(), Header: r.Header, Body: string(body)})
	now := a.answers[0]
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	a.mu.Unlock()
	for name, value := range now.Headers {
		w.Header().Set(name, value)
	}
	if now.Status != 0 {
		w.WriteHeader(now.Status)
		_, _ = io.WriteString(w, now.Body)
		w.(http.Flusher).Flush()
	}
	if now.Hang {
		select {
		case <-a.release:
		case <-r.Context().Done():
		}
	}
	if now.Break {
		panic(http.ErrAbortHandler)
	}
}

// Requests returns the requests so far.
func (a *API) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Request(nil), a.requests...)
}

// Events returns a response that streams the data of server-sent events. An event that begins with a name and a space has
// that name.
func Events(events ...string) Answer {
	var b strings.Builder
	for _, e := range events {
		if name, data, named := strings.Cut(e, " {"); named && !strings.HasPrefix(e, "{") {
			b.WriteString("event: " + name + "\n")
			e = "{" + data
		}
		b.WriteString("data: " + e + "\n\n")
	}
	return Answer{Status: http.StatusOK, Headers: map[string]string{"Content-Type": "text/event-stream"}, Body: b.String()}
}

// JSON returns a response that is a JSON document. headers are names and values.
func JSON(status int, body string, headers ...string) Answer {
	a := Answer{Status: status, Body: body, Headers: map[string]string{"Content-Type": "application/json"}}
	for i := 0; i < len(headers); i += 2 {
		a.Headers[headers[i]] = headers[i+1]
	}
	return a
}
