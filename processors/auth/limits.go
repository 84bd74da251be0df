package auth

import (
	"errors"
	"fmt"
	"time"
)

// Limits are the limits that a door applies to each caller and to each session. Zero fields have their defaults; a door documents those
// that it has of its own. A caller or a session that exceeds its limit is answered with 429 and Retry-After;
// the others are not affected.
//
// A caller is identified by Caller.Name. Callers without a name, and all callers of a door without authentication, are
// identified by their IP address (IPv6: the first 64 bits). Behind a reverse proxy all of them have the proxy's address and
// share one limit, unless they are served through httpserver.WithTrustedProxies.
type Limits struct {
	// Caller limits each caller (default: 256 open requests, 500 per second, a burst of 1000), Session each session (default: 32
	// open requests, 20 per second, a burst of 100).
	Caller, Session Share
	// BodyBytes limits the memory of all request bodies that are being received or handled, in bytes (default 64 MiB, or four times
	// Door.BodyLimit if that is more). Requests that do not fit are answered with 503. CallerBodyBytes limits that of one caller (429;
	// default 16 MiB, or twice Door.BodyLimit).
	BodyBytes, CallerBodyBytes int
	// BodyRate is the lowest rate at which a body may arrive, in bytes per second, after the first BodyIdle (default 8 KiB). BodyIdle
	// is how long a client may send nothing (default 10 s). A slower request is answered with 408.
	BodyRate int
	BodyIdle time.Duration
	// Keys limits for how many callers, and for how many sessions, the door remembers recent requests (default 10,000). The door
	// forgets the least recent ones first; they begin again with a full burst. Each takes about 300 bytes.
	Keys int
}

// Share is what one caller or one session may use of a door.
type Share struct {
	// Open limits the requests, streams and sockets that are open at the same time.
	Open int
	// PerSecond and Burst limit the rate of requests: a token bucket with Burst tokens, to which PerSecond are added per
	// second.
	PerSecond, Burst int
}

// ErrLimits is wrapped by the errors of Limits.Or.
var ErrLimits = errors.New("auth: bad limits")

// Or returns l with the values of defaults in its zero fields. It returns an error if a field is negative, or if one caller
// may use more body bytes than all callers together.
func (l Limits) Or(defaults Limits) (Limits, error) {
	for _, f := range []struct {
		name  string
		to    *int
		unset int
	}{
		{"Caller.Open", &l.Caller.Open, defaults.Caller.Open},
		{"Caller.PerSecond", &l.Caller.PerSecond, defaults.Caller.PerSecond},
		{"Caller.Burst", &l.Caller.Burst, defaults.Caller.Burst},
		{"Session.Open", &l.Session.Open, defaults.Session.Open},
		{"Session.PerSecond", &l.Session.PerSecond, defaults.Session.PerSecond},
		{"Session.Burst", &l.Session.Burst, defaults.Session.Burst},
		{"BodyBytes", &l.BodyBytes, defaults.BodyBytes},
		{"CallerBodyBytes", &l.CallerBodyBytes, 0},
		{"BodyRate", &l.BodyRate, defaults.BodyRate},
		{"Keys", &l.Keys, defaults.Keys},
	} {
		switch {
		case *f.to < 0:
			return l, fmt.Errorf("%w: %s is %d, want at least 0", ErrLimits, f.name, *f.to)
		case *f.to == 0:
			*f.to = f.unset
		}
	}
	switch {
	case l.BodyIdle < 0:
		return l, fmt.Errorf("%w: BodyIdle is %s, want at least 0", ErrLimits, l.BodyIdle)
	case l.BodyIdle == 0:
		l.BodyIdle = defaults.BodyIdle
	}
	if l.CallerBodyBytes == 0 {
		l.CallerBodyBytes = min(defaults.CallerBodyBytes, l.BodyBytes)
	}
	if l.CallerBodyBytes > l.BodyBytes {
		return l, fmt.Errorf("%w: CallerBodyBytes is %d, want at most BodyBytes, %d", ErrLimits, l.CallerBodyBytes, l.BodyBytes)
	}
	return l, nil
}
