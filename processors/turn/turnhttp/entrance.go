package turnhttp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// entrance returns the entrance of one path. Its errors are those of the options.
func (o *options) entrance(c entrance.Config) *entrance.Entrance {
	limits, err := o.limits.Or(entrance.DefaultLimits(o.bodyLimit))
	if err != nil {
		o.invalid("WithLimits: %w", err)
		return nil
	}
	c.Requests, c.Limits, c.BodyLimit = max(o.concurrency, 1), limits, o.bodyLimit
	c.Audit, c.Clock, c.Logger = o.audit, o.clock, o.logger
	e, err := entrance.New(c)
	if err != nil {
		o.invalid("%w", err)
	}
	return e
}

// cors returns the origins of the chat door.
func (o *options) cors() entrance.CORS {
	return entrance.CORS{
		Origins: o.origins, Methods: "POST, OPTIONS",
		Headers: strings.Join(append([]string{"Content-Type"}, slices.Compact(o.headers)...), ", "),
	}
}

// refused returns the answer to a request that its entrance refused.
func refused(w http.ResponseWriter, r *entrance.Refusal) answer {
	r.SetHeader(w.Header())
	return errorAnswer(r.Status, r.Text)
}
