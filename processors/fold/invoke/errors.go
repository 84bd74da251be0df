package invoke

import (
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/topics"
)

// ErrGone means that a turn cannot be read again: its events were removed, or it never began. The response is 410.
var ErrGone = errors.New("invoke: the turn is gone")

// Error is an error that is reported to the client. Other errors are logged, and the client receives an error without
// details.
type Error struct {
	// Status is the HTTP status of the response if nothing was streamed yet. A value outside of 400 to 599 becomes 500.
	// Without a Type, 401, 403 and 429 become 424, because they are errors of the agent's own requests and not of the
	// client.
	Status int
	// Type is a URL that identifies the kind of error (default TypeUnknown).
	Type string
	// Code is the error's short name in a stream (default agent_run_failed).
	Code string
	// Text is reported to the client, as Sanitize returns it.
	Text string
	// RetryAfter is the response header Retry-After, in whole seconds; zero for none.
	RetryAfter time.Duration

	outcome topics.Raw // of a gate that was decided before, in the error's status; nil for none
}

// Error implements error.
func (e *Error) Error() string { return "invoke: " + e.Text }

// Superseded is returned by a Stream's Next between two attempts at a turn. The events before it are void. A batch is made
// of the newer attempt. A stream ends with an error and names By: a client that resumes after By reads the newer attempt
// from its first event.
type Superseded struct{ By EventID }

// Error implements error.
func (*Superseded) Error() string { return "invoke: the attempt was superseded" }

// The values of Error.Type.
const (
	// TypeForceNotSupported is the type of a request with the flag force.
	TypeForceNotSupported = "https://agenta.ai/docs/misc/errors#v0:workflows:force-not-supported"
	// TypeUnknown is the type of all other errors.
	TypeUnknown = "https://agenta.ai/docs/errors#v1:sdk:unknown-workflow-invoke-error"
	// TypeInvalidSession is the type of a request with an invalid session id.
	TypeInvalidSession = "https://agenta.ai/docs/misc/errors#v0:workflows:invalid-session-id"
)

var errForce = &Error{
	Status: http.StatusNotAcceptable, Type: TypeForceNotSupported, Text: "flags.force is not supported yet",
}

var errClosed = &Error{Status: http.StatusServiceUnavailable, Code: "stopping", Text: "the service is stopping"}

const (
	// runFailed and runText are the code and the text of an error without its own.
	runFailed = "agent_run_failed"
	runText   = "agent run failed"
	// runnerError is the code of an error event.
	runnerError = "runner_error"
	maxErrorLen = 2000
)

// Sanitize returns an error text for clients: its first line, at most 2000 characters. An empty text and the first line of
// a stack trace become "agent run failed".
func Sanitize(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n")
	line = strings.ToValidUTF8(strings.TrimSpace(line), string(utf8.RuneError))
	for _, frame := range []string{"at ", "File \"", "Traceback ", "goroutine ", "panic:", "Exception in thread"} {
		if strings.HasPrefix(line, frame) {
			return runText
		}
	}
	if line == "" {
		return runText
	}
	if utf8.RuneCountInString(line) > maxErrorLen {
		return string([]rune(line)[:maxErrorLen]) + "…"
	}
	return line
}

// clientError returns the error that is reported to the client.
func clientError(err error) Error {
	var reported *Error
	switch {
	case errors.As(err, &reported):
		e := *reported
		e.Text = Sanitize(e.Text)
		if e.Status < 400 || e.Status > 599 {
			e.Status = http.StatusInternalServerError // another status would report a success
		}
		if e.Type == "" {
			e.Type = TypeUnknown
			switch e.Status {
			case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
				e.Status = http.StatusFailedDependency
			}
		}
		return e
	case errors.Is(err, ErrGone):
		return Error{Status: http.StatusGone, Type: TypeUnknown, Text: "the turn cannot be read again"}
	}
	return Error{
		Status: http.StatusInternalServerError, Type: TypeUnknown, Text: http.StatusText(http.StatusInternalServerError),
	}
}
