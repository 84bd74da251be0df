package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// Serve serves the connections of a listener until ctx ends. It then accepts no more of them and waits until the running
// requests are answered, at most for grace; after that it closes their connections and returns an error. It returns nil if all
// were answered. It closes the listener in any case. If serving fails, or s is shut down by others, it returns the error at once.
func Serve(ctx context.Context, s *http.Server, l net.Listener, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("httpserver: serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := s.Shutdown(limited)
	if err != nil {
		err = errors.Join(fmt.Errorf("httpserver: close %s: %w", l.Addr(), err), s.Close())
	}
	if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	return err
}
