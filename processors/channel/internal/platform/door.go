package platform

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// DoorConfig bounds a door. Zero values are the defaults.
type DoorConfig struct {
	// Method is the method of requests (default POST).
	Method string
	// Media are the content types that the door accepts, without parameters. Empty: application/json.
	Media []string
	// Limit is the largest body in bytes (default 1 MiB).
	Limit int64
	// ReadWithin is how long a body may take to arrive (default 5 s).
	ReadWithin time.Duration
	// Readers is how many requests are read at a time (default 64), and PerAddress how many of them from one address, or one IPv6
	// network of 64 bits (default 32).
	Readers, PerAddress int
	// Events is how many events are in progress or waiting for another one of their conversation (default 256), and PerKey how
	// many of them of one conversation (default 16).
	Events, PerKey int
}

const (
	defaultLimit      = 1 << 20
	defaultReadWithin = 5 * time.Second
	defaultReaders    = 64
	defaultPerAddress = 32
	defaultEvents     = 256
	defaultPerKey     = 16
)

// Door is the first part of an HTTP door. It is safe for concurrent use.
type Door struct {
	config  DoorConfig
	readers *slots
	events  *slots
	turns   turns
}

// NewDoor returns a door.
func NewDoor(c DoorConfig) *Door {
	if c.Method == "" {
		c.Method = http.MethodPost
	}
	if len(c.Media) == 0 {
		c.Media = []string{"application/json"}
	}
	if c.Limit <= 0 {
		c.Limit = defaultLimit
	}
	if c.ReadWithin <= 0 {
		c.ReadWithin = defaultReadWithin
	}
	return &Door{
		config:  c,
		readers: newSlots(orDefault(c.Readers, defaultReaders), orDefault(c.PerAddress, defaultPerAddress)),
		events:  newSlots(orDefault(c.Events, defaultEvents), orDefault(c.PerKey, defaultPerKey)),
		turns:   turns{waiting: map[string]*turn{}},
	}
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// Read receives the body of a request. It returns false if it has refused the request; the response is then written. The
// memory of the body is not counted after Read returns, so the caller verifies it at once.
func (d *Door) Read(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	control := http.NewResponseController(w)
	// An error means that the connection has no deadlines, as in tests without one.
	_ = control.SetReadDeadline(time.Now().Add(d.config.ReadWithin))
	if r.Method != d.config.Method {
		w.Header().Set("Allow", d.config.Method)
		Refuse(w, http.StatusMethodNotAllowed)
		return nil, false
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !slices.Contains(d.config.Media, media) {
		Refuse(w, http.StatusUnsupportedMediaType)
		return nil, false
	}
	if r.ContentLength > d.config.Limit {
		Refuse(w, http.StatusRequestEntityTooLarge)
		return nil, false
	}
	address := addressOf(r.RemoteAddr)
	if !d.readers.take(address) {
		Refuse(w, http.StatusServiceUnavailable)
		return nil, false
	}
	defer d.readers.free(address)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, d.config.Limit))
	if err != nil {
		Refuse(w, statusOf(err))
		return nil, false
	}
	_ = control.SetReadDeadline(time.Time{})
	return body, true
}

func statusOf(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	default:
		return http.StatusBadRequest
	}
}

// Refuse answers with a status, without a reason that would help a forger, and closes the connection. A status of 503 says to try
// again after a second.
func Refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Connection", "close")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, strings.ToLower(http.StatusText(status)), status)
}

// addressOf is the address of a sender as it is counted.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); ip.Is6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
