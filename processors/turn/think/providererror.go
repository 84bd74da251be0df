package think

import (
	"errors"
	"fmt"
	"time"
)

// The errors of model adapters. Their texts quote neither the conversation nor a secret.
var (
	// ErrSettings: the adapter cannot be created with these Settings.
	ErrSettings = errors.New("think: bad model settings")
	// ErrConversation: the conversation is empty, or has a message that cannot be translated for the provider.
	ErrConversation = errors.New("think: the conversation cannot be passed to the model")
	// ErrUnreachable: the provider cannot be reached, or the connection broke.
	ErrUnreachable = errors.New("think: the model's API cannot be reached")
	// ErrTimeout: the provider did not respond in time.
	ErrTimeout = errors.New("think: the model's API did not respond in time")
	// ErrResponse: the response is not one that the API documents, or it ended early.
	ErrResponse = errors.New("think: the model's response cannot be read")
	// ErrRefused: the model, or a safety filter of the provider, refused to answer.
	ErrRefused = errors.New("think: the model refused to answer")
	// ErrTruncated: the response was cut off at the token limit and has a tool call or no text.
	ErrTruncated = errors.New("think: the model's response was cut off at the token limit")
	// ErrEmpty: the reply has no call and no text that is not blank. The worker asks the model once more.
	ErrEmpty = errors.New("think: the model's reply is empty")
)

// ProviderError is an error response of a provider's API.
type ProviderError struct {
	// Provider is the name of the adapter's package, such as "anthropic".
	Provider string
	// Status is the HTTP status. For an error inside a stream, it is the status that corresponds to the error type.
	Status int
	// Type is the provider's error type, such as "overloaded_error". It may be empty.
	Type string
	// Request is the provider's ID of the request. It may be empty.
	Request string
}

// Error implements error. The provider's message is not part of it, because it may quote the request.
func (e *ProviderError) Error() string {
	text := fmt.Sprintf("%s: status %d", e.Provider, e.Status)
	if e.Type != "" {
		text += " (" + e.Type + ")"
	}
	if e.Request != "" {
		text += ", request " + e.Request
	}
	return text
}

// Unavailable is the error of a call that may succeed later: the provider limits the rate of requests (status 429), is
// overloaded or failed (5xx), asks to repeat the request (408 or 409), or cannot be reached. The worker calls the model again after it (Config.Retry).
type Unavailable struct {
	// After is how long the provider asks to wait; 0 if it does not say.
	After time.Duration
	// RateLimit reports that the provider limits the rate of requests. Further requests with the same key fail, too, until
	// After has passed.
	RateLimit bool
	// Err is a *ProviderError, ErrUnreachable, or ErrResponse if the response may be incomplete.
	Err error
}

// Error implements error.
func (e *Unavailable) Error() string {
	if e.After <= 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v; retry after %s", e.Err, e.After)
}

// Unwrap returns Err.
func (e *Unavailable) Unwrap() error { return e.Err }
