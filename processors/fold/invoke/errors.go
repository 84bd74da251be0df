package invoke

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"
)

// ErrGone says that a turn cannot be read again: nobody has its events any more, or it never was. It is answered 410.
var ErrGone = errors.New("invoke: the turn is gone")

// ErrDoor is wrapped by everything that New and the agents of this package refuse to be made of.
var ErrDoor = errors.New("invoke: bad configuration")

// Error is a failure that the client is told of. All other errors are logged and told as a failure, no more.
type Error struct {
	// Status is the HTTP status that it has before anything was streamed; 500 where it is none of 400 to 599. Without a
	// Type, 401, 403 and 429 become 424: they are not the client's.
	Status int
	// Type is a URL that names the kind of failure; empty for the one of unknown failures.
	Type string
	// Code is the failure's short name in a Vercel stream; empty for agent_run_failed.
	Code string
	// Text is told after the shape of Sanitize.
	Text string
}

// Error implements error.
func (e *Error) Error() string { return "invoke: " + e.Text }

// Superseded is what a Stream's Next returns between two attempts at a turn: what came before is void. A batch begins
// anew; a stream ends with a failure and names By, behind which the newer attempt can be read from its first event.
type Superseded struct{ By EventID }

// Error implements error.
func (*Superseded) Error() string { return "invoke: the attempt was superseded" }

// The types of failures that a client tells apart.
const (
	// TypeForceNotSupported is that of the refused flag force.
	TypeForceNotSupported = "https://agenta.ai/docs/misc/errors#v0:workflows:force-not-supported"
	// TypeUnknown is that of failures without a type of their own.
	TypeUnknown = "https://agenta.ai/docs/errors#v1:sdk:unknown-workflow-invoke-error"
	// TypeInvalidSession is that of a session id that cannot be one.
	TypeInvalidSession = "https://agenta.ai/docs/misc/errors#v0:workflows:invalid-session-id"
)

var errForce = &Error{
	Status: http.StatusNotAcceptable, Type: TypeForceNotSupported, Text: "flags.force is not supported yet",
}

const (
	// runFailed is the code, and with blanks the text, of a failure that has none of its own.
	runFailed = "agent_run_failed"
	// runnerError is the code of a failure that the run itself reported.
	runnerError = "runner_error"
	runText     = "agent run failed"
	maxErrorLen = 2000
)

// Sanitize is a failure's text as clients are told it: its first line, at most 2000 characters, and nothing of a stack.
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

// told is what the client is told of a failure.
func told(err error) Error {
	var known *Error
	switch {
	case errors.As(err, &known):
		e := *known
		e.Text = Sanitize(e.Text)
		if e.Status < 400 || e.Status > 599 {
			e.Status = http.StatusInternalServerError // what is no failure's would tell of a success
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
