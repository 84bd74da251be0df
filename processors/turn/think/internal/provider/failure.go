package provider

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/turntable-streams/turntable/processors/turn/think"
)

// own are the errors of this module that an attempt returns. Their texts quote nothing.
var own = []error{
	think.ErrConversation, think.ErrResponse, think.ErrRefused, think.ErrTruncated, think.ErrEmpty,
}

// ErrNoReason is the error of an attempt whose stream ended without the reason why the model stopped.
var ErrNoReason = errors.New("provider: the stream has no finish reason")

// failure returns the error of an attempt. The text of the SDK's error is not used, because it can contain the address, the
// request and the provider's message, which may quote the conversation.
func (c *Client) failure(ctx, inner context.Context, o *observed, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(inner), think.ErrTimeout):
		return think.ErrTimeout
	}
	success := o.status >= 200 && o.status <= 299
	for _, e := range own { // an adapter reads a redirect, which the SDKs accept, as a response that ends early
		if errors.Is(err, e) && !o.broken && (success || o.status == 0) {
			return e
		}
	}
	if errors.Is(err, ErrNoReason) && success && !o.broken {
		if o.finished() { // it may have been cut off
			return &think.Unavailable{Err: think.ErrResponse}
		}
		return think.ErrResponse
	}
	var inStream *Failure
	e, ok := c.classify(err)
	switch {
	case errors.As(err, &inStream):
		e = inStream.Response
	case !ok:
		e = Response{}
	}
	if e.Status == 0 && !success {
		e.Status = o.status
	}
	if e.After == 0 {
		e.After = o.after
	}
	if e.Request == "" {
		e.Request = o.request
	}
	switch {
	case e.Status != 0:
		return c.responseError(e)
	case o.status == 0 || o.broken:
		return &think.Unavailable{Err: think.ErrUnreachable}
	default:
		return think.ErrResponse
	}
}

// responseError returns the error of an error response.
func (c *Client) responseError(e Response) error {
	failed := &think.ProviderError{Provider: c.name, Status: e.Status, Type: word(e.Type), Request: word(e.Request)}
	switch {
	case e.Final:
		return failed
	case e.Status == http.StatusRequestTimeout, e.Status == http.StatusConflict, e.Status == http.StatusTooManyRequests,
		e.Status >= http.StatusInternalServerError:
		return &think.Unavailable{After: e.After, RateLimit: e.Status == http.StatusTooManyRequests, Err: failed}
	default:
		return failed
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
