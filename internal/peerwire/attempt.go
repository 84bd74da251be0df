package peerwire

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrAttempt is wrapped by the errors about an Attempt or an Answer that cannot be read.
var ErrAttempt = errors.New("wire: malformed attempt")

// Attempt is the body of a record of {agent}-peer-attempts: what the sink sends to a peer.
type Attempt struct {
	// TaskID is that of the request.
	TaskID string
	// Request is the body of the request, without a timeout; empty if Cancel is set.
	Request []byte
	// Timeout is how long this attempt may take, from dialing to the end of the response.
	Timeout time.Duration
	// Deadline is when the task is given up.
	Deadline time.Time
	// Repeat says that an attempt before this one may have reached the peer. A peer that is not Idempotent must not get the
	// request again.
	Repeat bool
	// Cancel says that the task is no longer wanted: a running attempt ends, and the peer is told.
	Cancel bool
}

type attemptBody struct {
	TaskID     string         `json:"task_id"`
	Request    jsontext.Value `json:"request,omitzero"`
	TimeoutMS  int64          `json:"timeout_ms"`
	DeadlineMS int64          `json:"deadline_ms"`
	Repeat     bool           `json:"repeat,omitzero"`
	Cancel     bool           `json:"cancel,omitzero"`
}

// Body returns the attempt as a JSON object.
func (a Attempt) Body() []byte {
	return encoded(attemptBody{a.TaskID, a.Request, a.Timeout.Milliseconds(), a.Deadline.UnixMilli(), a.Repeat, a.Cancel})
}

// ReadAttempt reads the body of an attempt.
func ReadAttempt(body []byte) (Attempt, error) {
	var b attemptBody
	if err := decode(body, &b); err != nil {
		return Attempt{}, err
	}
	if b.TaskID == "" || (b.Request.Kind() == '{') == b.Cancel {
		return Attempt{}, fmt.Errorf("%w: want a task_id, and a request or cancel", ErrAttempt)
	}
	return Attempt{
		b.TaskID, b.Request, time.Duration(b.TimeoutMS) * time.Millisecond, time.UnixMilli(b.DeadlineMS), b.Repeat, b.Cancel,
	}, nil
}

// Answer is the response of a receipt of an attempt: what the attempt brought. The status of the response and its Retry-After
// are in the receipt.
type Answer struct {
	// Reply is the body of a well-formed reply; empty for none.
	Reply []byte
	// Code says why there is no Reply. It is one of those of the dispatcher.
	Code Code
	// Detail is the text of the peer's error, at most 4 KiB. It is the peer's: show it to a model only through Untrusted.
	Detail string
	// Answered says that the headers of a response had arrived.
	Answered bool
	// Reached says that the peer may run the task. It is false if the peer refused it, or could not be connected.
	Reached bool
}

type answerBody struct {
	Reply    jsontext.Value `json:"reply,omitzero"`
	Code     Code           `json:"code,omitzero"`
	Detail   string         `json:"detail,omitzero"`
	Answered bool           `json:"answered,omitzero"`
	Reached  bool           `json:"reached,omitzero"`
}

// Body returns the answer as a JSON object.
func (a Answer) Body() []byte {
	return encoded(answerBody{a.Reply, a.Code, a.Detail, a.Answered, a.Reached})
}

// ReadAnswer reads the response of a receipt.
func ReadAnswer(body []byte) (Answer, error) {
	var b answerBody
	if err := decode(body, &b); err != nil {
		return Answer{}, err
	}
	return Answer{b.Reply, b.Code, b.Detail, b.Answered, b.Reached}, nil
}

// lenient reads and writes what a peer may send: duplicate members and texts that are not UTF-8.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func encoded(v any) []byte {
	body, err := json.Marshal(v, lenient)
	if err != nil {
		panic("peer: write an attempt: " + err.Error())
	}
	return body
}

func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into, lenient); err != nil {
		return ErrAttempt // the error of the package may quote the body
	}
	return nil
}
