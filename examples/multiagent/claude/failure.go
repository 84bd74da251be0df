package claude

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
)

// ErrUnreachable is returned if the API cannot be reached.
var ErrUnreachable = errors.New("claude: API cannot be reached")

// ErrTimeout is returned if the API does not respond in time.
var ErrTimeout = errors.New("claude: API did not answer in time")

// StatusError is an error response of the API.
type StatusError struct {
	Status int
	// Type is the API's error type, such as "overloaded_error". It may be empty.
	Type string
	// Request is the API's ID of the request. It may be empty.
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

// failure translates an error of the SDK. The SDK's text is not used, because it contains the address and the API's message,
// which may quote the conversation.
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

// maxWord bounds a word of the API, in bytes.
const maxWord = 64

// word returns text if it consists of letters, digits, '_' and '-' only, otherwise "".
func word(text string) string {
	odd := func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if len(text) > maxWord || strings.ContainsFunc(text, odd) {
		return ""
	}
	return text
}
