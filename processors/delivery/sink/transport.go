package sink

import (
	"context"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/topics"
)

// Transport delivers to the receivers of one kind of route.
type Transport interface {
	// Deliver makes one attempt. It returns nil if the receiver accepted the delivery, or else a *Failure. Any other error
	// counts as a failure that can be retried; its text is discarded because it may contain a secret. Deliver must return
	// soon after ctx ends. It is called concurrently. DeliveryID is the same for every attempt: pass it to the receiver,
	// which deduplicates by it.
	Deliver(ctx context.Context, d topics.Delivery) error
}

// Failure is the error of a failed attempt.
type Failure struct {
	// Reason says why in a few words, for example "timeout" or "status 503". It must not quote the delivery or an address.
	Reason string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// Suppressed reports that there was nothing to send: the delivery ends, and its receipt says so. No failure is counted.
	Suppressed bool
	// Final reports whether the receiver refused the delivery: it is not retried.
	Final bool
	// RetryAfter is the shortest wait before the next attempt that the receiver asks for, 0 if it asks for none.
	RetryAfter time.Duration
}

// Error implements error.
func (f *Failure) Error() string { return "sink: attempt failed: " + f.Reason }

// Func is a Transport that calls a function, for programs that embed the sink and receive the deliveries themselves.
type Func func(ctx context.Context, d topics.Delivery) error

// Deliver implements Transport.
func (f Func) Deliver(ctx context.Context, d topics.Delivery) error { return f(ctx, d) }

// Log returns a Transport that accepts every delivery and logs its IDs and size, but not its content.
func Log(l *zap.Logger) Transport {
	return Func(func(_ context.Context, d topics.Delivery) error {
		l.Info("delivered", zap.String("delivery", d.DeliveryID), zap.String("session", d.SessionID),
			zap.String("turn", d.TurnID), zap.String("route", d.Route.Key()), zap.Int64("attempt", d.Attempt),
			zap.Int("bytes", len(d.Body)))
		return nil
	})
}

// CallbackBody returns the request body of a callback: {"result": content}, with content as a JSON string. For an output
// that is an error it also has the output's status and error. Turntable's callback door turns these into an error result;
// FlightDeck's keeps them as part of the result.
func CallbackBody(d topics.Delivery) topics.Raw {
	content, _ := topics.Lookup(d.Body, "content")
	if len(content) == 0 || content[0] != '"' {
		content, _ = jsontext.AppendQuote(nil, topics.Text(content)) // invalid UTF-8 is replaced
	}
	body := append(topics.Raw(`{"result":`), content...)
	status, _ := topics.Lookup(d.Body, "status")
	if text := topics.TextOf(status); text != nil && strings.TrimSpace(*text) == "error" {
		failure, _ := topics.Lookup(d.Body, "error")
		body = append(body, `,"status":"error","error":`...)
		body = append(body, failure.String()...)
	}
	return append(body, '}')
}
