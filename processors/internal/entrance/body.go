package entrance

import (
	"errors"
	"io"
	"math/bits"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/codec"
)

const (
	// lingering is how long the rest of a refused body is read.
	lingering = time.Second
	// firstBuffer is the size of the buffer of a body whose length is not known, in bytes.
	firstBuffer = 4 << 10
)

// AnyMedia in Config.Media accepts bodies of every content type.
const AnyMedia = "*/*"

// checkMedia refuses a body whose content type is not one of the door: a page of any origin can send plain text and forms without
// asking the door first (CORS), also without saying what they are. A request without a body needs no type.
func (v *Visit) checkMedia() *Refusal {
	kind, wanted := v.r.Header.Get("Content-Type"), v.entrance.config.Media
	switch {
	case v.r.ContentLength == 0 && (kind == "" || v.r.Method == http.MethodGet), slices.Contains(wanted, AnyMedia):
		return nil
	case wanted == nil:
		if !IsJSON(kind) {
			return &Refusal{Status: http.StatusUnsupportedMediaType, Text: "Content-Type must be application/json"}
		}
		return nil
	}
	if media, _, err := mime.ParseMediaType(kind); err != nil || !slices.Contains(wanted, media) {
		return &Refusal{Status: http.StatusUnsupportedMediaType, Text: "Content-Type must be " + strings.Join(wanted, " or ")}
	}
	return nil
}

// IsJSON reports whether a content type is JSON.
func IsJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}

// ReadBody receives the body, if its content type is one of the door. Its memory counts against the limits of all bodies until Close.
// A JSON value that is nested deeper than codec.MaxDepth is not received to its end: ReadBody returns its beginning, which every door
// refuses for its depth.
func (v *Visit) ReadBody(w http.ResponseWriter) ([]byte, *Refusal) {
	if refusal := v.checkMedia(); refusal != nil {
		return nil, refusal
	}
	limit := v.entrance.config.BodyLimit
	if v.r.ContentLength > limit {
		return nil, tooLarge()
	}
	body := http.MaxBytesReader(w, v.r.Body, limit)
	longest := limit + 1
	if v.r.ContentLength >= 0 {
		longest = v.r.ContentLength + 1 // one more than its end, so that the end is seen
	}
	limits := v.entrance.config.Limits
	var raw []byte
	begun := time.Now()
	v.arrive()
	defer v.arrived()
	for {
		if len(raw) == cap(raw) {
			if codec.Deeper(raw, codec.MaxDepth) {
				if !v.arrived() {
					return nil, gaveWay()
				}
				return raw, nil
			}
			if int64(len(raw)) >= longest { // a handler in front, which decompresses for example, has replaced the body
				longest = limit + 1
			}
			var refusal *Refusal
			if raw, refusal = v.grow(raw, int(longest)); refusal != nil {
				return nil, refusal
			}
		}
		v.deadline(nextBytesWithin(limits.BodyIdle, limits.BodyRate, len(raw), time.Since(begun)))
		n, err := body.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		var large *http.MaxBytesError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if !v.arrived() {
				return nil, gaveWay()
			}
			v.received = true
			v.endDeadline()
			return raw[:len(raw):len(raw)], nil // what follows can be of another request
		case errors.As(err, &large):
			return nil, tooLarge()
		case !v.arrived():
			return nil, gaveWay()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, &Refusal{Status: http.StatusRequestTimeout, Text: "Request body arrives too slowly"}
		default:
			return nil, &Refusal{Status: http.StatusBadRequest, Text: "Request body cannot be read"}
		}
	}
}

func tooLarge() *Refusal {
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Text: "Request body is too large"}
}

// nextBytesWithin is how long the next bytes of a body may take to arrive: at most idle, less if the body is late at a rate in bytes
// per second.
func nextBytesWithin(idle time.Duration, rate, received int, elapsed time.Duration) time.Duration {
	due := idle + time.Duration(received)*time.Second/time.Duration(rate)
	return min(idle, due-elapsed)
}

// grow doubles the buffer of a body up to a size, within the limits of all bodies.
func (v *Visit) grow(raw []byte, longest int) ([]byte, *Refusal) {
	size := min(max(2*cap(raw), firstBuffer), longest)
	more := size - cap(raw)
	if more <= 0 {
		return nil, tooLarge()
	}
	for {
		switch v.take(more) {
		case granted:
			grown := append(bufferOf(size), raw...)
			reuse(raw)
			return grown, nil
		case displaced:
			return nil, gaveWay()
		case ownExhausted:
			if !v.entrance.arrivals.displace(v.caller, v) {
				return nil, v.Refuse(tooMany("Too many requests with large bodies", openWait))
			}
		case allExhausted:
			if !v.entrance.arrivals.displace("", v) {
				return nil, busy("Too many requests with large bodies")
			}
		}
	}
}

// buffers are the buffers that bodies have outgrown. They are half of what the bodies of an attack would leave to the garbage collector.
// The last buffer of a body belongs to the door and is not reused. Pool n has those of firstBuffer << n bytes.
var buffers [12]sync.Pool

// bufferOf returns an empty buffer of a size.
func bufferOf(size int) []byte {
	if n := classOf(size); n >= 0 {
		if b, ok := buffers[n].Get().(*[]byte); ok {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, size)
}

// reuse keeps a buffer for another body. The caller must not use it afterwards.
func reuse(b []byte) {
	if n := classOf(cap(b)); n >= 0 {
		buffers[n].Put(&b)
	}
}

// classOf returns the pool of the buffers of a size, -1 if there is none.
func classOf(size int) int {
	if n := bits.TrailingZeros(uint(size / firstBuffer)); n < len(buffers) && size == firstBuffer<<n {
		return n
	}
	return -1
}

func gaveWay() *Refusal { return busy("Request body arrives too slowly while there are others") }
