package transport

import (
	"net/http"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// outcome is how an attempt ended. failure is nil if there is a reply, or if a cancel was passed on.
type outcome struct {
	answer  peerwire.Answer
	failure *sink.Failure
}

// size returns the size of the outcome's texts in bytes.
func (o outcome) size() int { return len(o.answer.Reply) + len(o.answer.Detail) }

// result returns what Exchange returns.
func (o outcome) result() (topics.Raw, error) {
	if o.failure == nil {
		return o.answer.Body(), nil
	}
	return o.answer.Body(), o.failure
}

// alsoReached returns the outcome of an attempt after one that may have reached the peer.
func (o outcome) alsoReached(before bool) outcome {
	o.answer.Reached = o.answer.Reached || before
	return o
}

// failed returns the outcome of an attempt without a reply. It can be retried, and did not reach the peer, unless an option
// says otherwise.
func failed(code peerwire.Code, reason string, options ...func(*outcome)) outcome {
	o := outcome{peerwire.Answer{Code: code}, &sink.Failure{Reason: reason}}
	for _, option := range options {
		option(&o)
	}
	return o
}

func final(o *outcome)    { o.failure.Final = true }
func answered(o *outcome) { o.answer.Answered = true }
func reached(o *outcome)  { o.answer.Reached = true }

func status(code int) func(*outcome) {
	return func(o *outcome) { o.failure.Status = code }
}

const reasonCancelled = "cancelled"

// refused returns the outcome of a response with another status than 2xx. body may be incomplete.
func refused(response *http.Response, body []byte, now time.Time) outcome {
	code := response.StatusCode
	o := failed(peerwire.CodePeerRefused, "status "+strconv.Itoa(code), answered, status(code))
	o.answer.Detail = peerwire.ReadRefusal(code, body).Text
	switch {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		o.answer.Code = peerwire.CodePeerBusy
		o.failure.RetryAfter = sink.ParseRetryAfter(response.Header.Get("Retry-After"), now)
	case code >= 500:
		reached(&o)
		o.failure.RetryAfter = sink.ParseRetryAfter(response.Header.Get("Retry-After"), now)
	case code >= 400:
		final(&o)
	default: // a peer may redirect to the result of a task
		reached(&o)
		final(&o)
	}
	return o
}

// maxKept is the largest reply that is passed on, in bytes: its record has the IDs of the task too.
const maxKept = 768 << 10

// replied returns the outcome of a response with status 2xx whose body was read to its end. The result of a reply that does not
// fit into a record is cut, because peers need not have our limits.
func replied(code int, body []byte, taskID string) outcome {
	reply, err := peerwire.ReadReply(body, taskID)
	if err == nil && len(body) > maxKept {
		short, ok := reply.Shortened(func(body []byte) bool { return len(body) <= maxKept })
		if !ok {
			return malformed(code)
		}
		body = short.Body()
	}
	if err != nil {
		return malformed(code)
	}
	return outcome{answer: peerwire.Answer{Reply: body, Answered: true, Reached: true}}
}

func malformed(code int) outcome {
	return failed(peerwire.CodeMalformed, "malformed reply", final, answered, reached, status(code))
}
