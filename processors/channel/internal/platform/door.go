package platform

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/internal/inorder"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// DoorConfig bounds a door. Zero values are the defaults.
type DoorConfig struct {
	// Method is the method of requests (default POST).
	Method string
	// Media are the content types that the door accepts, without parameters. Empty: application/json.
	Media []string
	// Limit is the largest body in bytes (default 1 MiB).
	Limit int64
	// Limits are those of bodies and of senders, who are addresses: the body tells who they are.
	Limits auth.Limits
	// Events is how many events are in progress or waiting for another one of their conversation (default 256), and PerKey how
	// many of them of one conversation (default 16).
	Events, PerKey int
	// Logger logs requests that are refused with 401, 403 or 429, and events that were not handled (default: none).
	Logger *zap.Logger
}

const (
	defaultEvents = 256
	defaultPerKey = 16
	// readers is how many requests are read at a time. Slow ones give way to others (entrance).
	readers = 1024
	// idle is how long a sender may send nothing: platforms send an event in one piece.
	idle = 5 * time.Second
)

// senderShare is what one address may use. All events of a platform can come from one.
var senderShare = auth.Share{Open: 256, PerSecond: 2000, Burst: 4000}

// Door is the first part of an HTTP door. It is safe for concurrent use.
type Door struct {
	method   string
	entrance *entrance.Entrance
	log      *zap.Logger
	turns    inorder.Turns[string]
}

// NewDoor returns a door. It panics if the limits cannot be used, which are those of the adapters.
func NewDoor(c DoorConfig) *Door {
	c.Method = cmp.Or(c.Method, http.MethodPost)
	if len(c.Media) == 0 {
		c.Media = []string{"application/json"}
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	door := auth.Door{BodyLimit: c.Limit, Concurrency: readers, Limits: c.Limits, Logger: c.Logger}
	var check bounds.Check
	entrance.Complete(&check, &door)
	e := entrance.New(&check, entrance.Config{
		Door: door, Name: "channel", Tokens: true, Media: c.Media, Defaults: auth.Limits{Caller: senderShare, BodyIdle: idle},
	})
	if err := check.Err(errors.New("platform: unusable limits")); err != nil {
		panic(err.Error())
	}
	return &Door{
		method: c.Method, entrance: e, log: c.Logger,
		turns: inorder.Turns[string]{All: cmp.Or(max(c.Events, 0), defaultEvents), Each: cmp.Or(max(c.PerKey, 0), defaultPerKey)},
	}
}

// Read receives the body of a request. It returns false if it has refused the request; the response is then written. The
// memory of the body is not counted after Read returns, so the caller verifies it at once, and calls Unauthorized if it is not
// valid.
func (d *Door) Read(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	v, refusal := d.entrance.Open(w, r)
	defer v.Close()
	if refusal == nil && r.Method != d.method {
		w.Header().Set("Allow", d.method)
		refusal = &entrance.Refusal{Status: http.StatusMethodNotAllowed}
	}
	if refusal == nil {
		refusal = v.Admit(auth.Caller{})
	}
	if refusal == nil {
		body, refusal = v.ReadBody(w)
	}
	if refusal != nil {
		refusal.SetHeader(w.Header())
		Refuse(w, refusal.Status)
		return nil, false
	}
	return body, true
}

// Reply is the answer to a request. The zero value is 200 without a body.
type Reply struct {
	Status      int
	Media, Body string
}

// The answers to requests that are not taken. The reason is not told: it would help a forger.
var (
	Malformed = Reply{Status: http.StatusBadRequest}
	Forged    = Reply{Status: http.StatusUnauthorized}
	Later     = Reply{Status: http.StatusServiceUnavailable} // the platform sends the event again
)

// JSON returns the answer 200 with a body.
func JSON(body string) Reply { return Reply{Media: "application/json", Body: body} }

// Handler returns a handler that serves requests.
func (d *Door) Handler(handle func(r *http.Request, body []byte) Reply) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.Serve(w, r, func(body []byte) Reply { return handle(r, body) })
	})
}

// Serve receives the body of a request, see Read, and answers what handle returns for it.
func (d *Door) Serve(w http.ResponseWriter, r *http.Request, handle func(body []byte) Reply) {
	if body, ok := d.Read(w, r); ok {
		d.Answer(w, r, handle(body))
	}
}

// Answer writes an answer: Forged as Unauthorized does, and other refusals as Refuse.
func (d *Door) Answer(w http.ResponseWriter, r *http.Request, a Reply) {
	switch {
	case a.Status == http.StatusUnauthorized:
		d.Unauthorized(w, r)
	case a.Status >= http.StatusMultipleChoices:
		Refuse(w, a.Status)
	default:
		if a.Media != "" {
			w.Header().Set("Content-Type", a.Media)
		}
		if a.Status != 0 {
			w.WriteHeader(a.Status)
		}
		_, _ = io.WriteString(w, a.Body) // the platform sends the event again if this fails
	}
}

// Unauthorized answers a request whose sender is not the platform: 401, or 429 if its address has sent many of them. It does not
// keep out the platform behind the same address: signatures and tokens of platforms cannot be guessed, and a valid one is accepted.
func (d *Door) Unauthorized(w http.ResponseWriter, r *http.Request) {
	if d.Limited(w, r) {
		Refuse(w, http.StatusTooManyRequests)
		return
	}
	Refuse(w, http.StatusUnauthorized)
}

// Limited counts a request for Unauthorized, for adapters that write the answer. It returns true if the answer is 429, and has set
// Retry-After.
func (d *Door) Limited(w http.ResponseWriter, r *http.Request) bool {
	refusal := d.entrance.Fail(r, &entrance.Refusal{Status: http.StatusUnauthorized, Text: "Unauthorized"})
	refusal.SetHeader(w.Header())
	return refusal.Status == http.StatusTooManyRequests
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
