package sink

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// Attempt is a delivery for an Exchanger.
type Attempt struct {
	topics.Delivery
	// Repeated says that this attempt may have been made before: a sink died during it, or before its receipt was written.
	// It is false if the delivery group requested the attempt twice.
	Repeated bool
}

// Exchanger is a Transport whose receivers respond with something that the requester of the delivery needs. A sink calls
// Exchange instead of Deliver, and also passes on the response.
//
// A record that may have been handled before, and for which the sink has no slot, gets a failed receipt with the reason
// delivery.ReasonInterrupted and without a response, because a deferred one would say that no attempt was made.
type Exchanger interface {
	Transport
	// Exchange makes one attempt. The error is that of Deliver. The response is a JSON object in valid UTF-8, or nil, and
	// becomes the Response of the receipt, whether there is an error or not. The sink drops any other response.
	Exchange(ctx context.Context, a Attempt) (response topics.Raw, err error)
}

// Shortener is an Exchanger whose responses may be too large for a record.
type Shortener interface {
	Exchanger
	// Shorten returns what to write instead of a response that is too large, or nil. The receipt then has the outcome refused
	// if it was delivered, because another attempt would end in the same way.
	Shorten(response topics.Raw) topics.Raw
}

// writable reports whether a receipt with the response can be read.
func writable(response topics.Raw) bool {
	v := jsontext.Value(response)
	return response == nil || !codec.Deeper(v, topics.MaxValueDepth) && v.Kind() == '{' &&
		v.IsValid(jsontext.AllowDuplicateNames(true))
}

// reasonTooLarge is the reason of a receipt whose response was shortened.
const reasonTooLarge = "response does not fit into a record"

// shortened returns a receipt that is smaller than one that does not fit into a record.
func shortened(r topics.Receipt, t Transport) topics.Receipt {
	response := r.Response
	r.Response = nil
	if s, ok := t.(Shortener); ok {
		if short := s.Shorten(response); writable(short) {
			r.Response = short
		}
	}
	if r.Outcome == topics.OutcomeDelivered {
		r.Outcome, r.Reason = topics.OutcomeRefused, text(reasonTooLarge)
	}
	return r
}
