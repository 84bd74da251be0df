package door

import (
	"net/http"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// entrance returns the entrance of one path. Its errors are those of the options.
func (o *options) entrance(name, agent string, a auth.Authenticate, trusted []string) *entrance.Entrance {
	limits, err := o.limits.Or(entrance.DefaultLimits(o.bodyLimit))
	if err != nil {
		o.invalid("WithLimits: %w", err)
		return nil
	}
	e, err := entrance.New(entrance.Config{
		Name: name, Agent: agent, Authenticate: a, Requests: max(o.concurrency, 1), Limits: limits, BodyLimit: o.bodyLimit,
		Origins: trusted, Audit: o.audit, Clock: o.clock, Logger: o.logger,
	})
	if err != nil {
		o.invalid("%w", err)
	}
	return e
}

// cors returns the origins of the chat door. Without authentication any page may call it, as in FlightDeck.
func (o *options) cors() entrance.CORS {
	c := entrance.CORS{
		Origins: o.origins, Methods: "POST, OPTIONS",
		Headers: strings.Join(append([]string{"Content-Type"}, slices.Compact(o.headers)...), ", "),
	}
	if len(c.Origins) == 0 && o.authenticate == nil {
		c.Origins = []string{entrance.AnyOrigin}
	}
	return c
}

// refused returns the answer to a request that its entrance refused.
func refused(w http.ResponseWriter, r *entrance.Refusal) answer {
	r.SetHeader(w.Header())
	return errorAnswer(r.Status, r.Text)
}
