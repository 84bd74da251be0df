package invoke

import (
	"context"
	"errors"
	"net/http"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// authenticate sets the caller of the request. If it returns false, it has written the response.
func (c *exchange) authenticate(resumes bool) bool {
	needs := auth.Read
	if !resumes && !c.door.answers {
		needs |= auth.Write
	}
	refusal := c.visit.Authenticate(needs)
	if refusal == nil && !resumes && !c.visit.Caller.Can(auth.Write) && !c.visit.Caller.Can(auth.Answer) {
		refusal = c.visit.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "Forbidden"})
	}
	if refusal == nil {
		return true
	}
	var reported *Error
	if errors.As(refusal.Cause, &reported) && reported.Status >= 400 {
		refusal.Status, refusal.Text = reported.Status, Sanitize(reported.Text)
	}
	c.refuse(refusal)
	return false
}

// errCredential ends the response to a caller whose credential has ended. The turn continues.
var errCredential = &Error{
	Status: http.StatusUnauthorized, Type: TypeUnknown, Code: "credential_expired",
	Text: "the credential has expired; resume after the last event with a new one",
}

// untilExpiry returns a context that ends with the cause errCredential when the caller's credential ends. stop returns when
// the wait for that has ended.
func (c *exchange) untilExpiry(ctx context.Context) (reading context.Context, stop func()) {
	if c.visit.Caller.Lasts() {
		return ctx, func() {}
	}
	reading, cancel := context.WithCancelCause(ctx)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		if c.visit.Caller.Await(reading.Done(), c.door.config.Clock) {
			cancel(errCredential)
		}
	}()
	return reading, func() {
		cancel(nil)
		<-waited
	}
}

// ended returns errCredential if reading has ended for it, otherwise err.
func ended(reading context.Context, err error) error {
	if context.Cause(reading) == error(errCredential) {
		return errCredential
	}
	return err
}
