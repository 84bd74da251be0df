package httpserver

import (
	"net/http"
	"time"
)

const (
	headerTimeout = 5 * time.Second
	// requestTimeout is for handlers that are not doors: a door moves the deadline while a body arrives.
	requestTimeout = time.Minute
	idleTimeout    = time.Minute
	maxHeaderBytes = 48 << 10
)

// New returns a server with a limit of 5 s for the headers of a request and of 48 KiB for their size, 1 min for a request
// whose handler is not a door of this module, and 1 min for a connection without a request. It has no limit for the time to
// write a response, which would end long streams: the doors limit each write. The caller can change the fields of the
// server before it serves.
func New(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
}
