package claude

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
)

// ErrUnreachable is an API that gives no answer.
var ErrUnreachable = errors.New("claude: API cannot be reached")

// ErrTimeout is an API that gives no answer in time.
var ErrTimeout = errors.New("claude: API did not answer in time")

// StatusError is an answer that is an error.
type StatusError struct {
	Status int
	// Type is the API's word for it, "overloaded_error" say; it may be empty.
	Type string
	// Request is the API's id of the request, for its operator; it may be empty.
	Request string
}

// Error implements error.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("claude: status %d", e.Status)
	if e.Type != "" {
		text += " (" + e.Type + ")"
	}
	if e.Request != "" {
		text += ", request " + e.Request
	}
	return text
}

// failure is an error of the SDK's in words that quote nothing: its own has the address, and what the API said, which
// may quote the conversation.
func failure(err error) error {
	var api *anthropic.Error
	var connection *url.Error
	switch {
	case errors.As(err, &api):
		return &StatusError{Status: api.StatusCode, Type: word(string(api.Type())), Request: word(api.RequestID)}
	case errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	case errors.As(err, &connection):
		return ErrUnreachable
	default:
		return ErrAnswer
	}
}

// maxWord bounds a foreign word.
const maxWord = 64

// word is a foreign text where it is a plain word, else nothing.
func word(text string) string {
	odd := func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if len(text) > maxWord || strings.ContainsFunc(text, odd) {
		return ""
	}
	return text
}
