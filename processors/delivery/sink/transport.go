package sink

import (
	"context"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/topics"
)

// Transport carries deliveries of a kind to their receivers.
type Transport interface {
	// Deliver makes one attempt and returns nil when the receiver took the delivery. An error is a *Failure, or counts
	// as one that may pass; its text is written nowhere, for it may hold a secret. Deliver returns soon after ctx
	// ends. It is called from many goroutines. DeliveryID is the same at every attempt: give it to the receiver to
	// drop repeats by.
	Deliver(ctx context.Context, d topics.Delivery) error
}

// Failure is an attempt that failed.
type Failure struct {
	// Reason says why, in a few words that quote neither the delivery nor an address: "timeout", "status 503".
	Reason string
	// Status is the HTTP status, 0 where there was none.
	Status int
	// Final says that every other attempt would fail too.
	Final bool
	// RetryAfter is what the receiver asked for, 0 for nothing.
	RetryAfter time.Duration
}

// Error implements error.
func (f *Failure) Error() string { return "sink: attempt failed: " + f.Reason }

// Func is a transport that calls a function: for programs that embed the sink and are the receiver themselves.
type Func func(ctx context.Context, d topics.Delivery) error

// Deliver implements Transport.
func (f Func) Deliver(ctx context.Context, d topics.Delivery) error { return f(ctx, d) }

// Log is a transport that writes a line for each delivery: ids and sizes, nothing of what is said.
func Log(l *zap.Logger) Transport {
	return Func(func(_ context.Context, d topics.Delivery) error {
		l.Info("delivered", zap.String("delivery", d.DeliveryID), zap.String("session", d.SessionID),
			zap.String("turn", d.TurnID), zap.String("route", d.Route.Key()), zap.Int64("attempt", d.Attempt),
			zap.Int("bytes", len(d.Body)))
		return nil
	})
}

// CallbackBody is what a callback says of a delivery: {"result": content}, always a text. Of an output that is an error it says that
// too, with status and error as the output has them, which a tool callback of ours makes an error result of;
// FlightDeck's keeps them as part of the result.
func CallbackBody(d topics.Delivery) topics.Raw {
	content, _ := topics.Lookup(d.Body, "content")
	if len(content) == 0 || content[0] != '"' {
		content, _ = jsontext.AppendQuote(nil, topics.Text(content)) // what is no UTF-8 is replaced
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
