package invoke

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

func (r *rules) entrance() (*entrance.Entrance, error) {
	limits, err := r.limits.Or(entrance.DefaultLimits(r.bodyLimit))
	if err != nil {
		return nil, fmt.Errorf("%w: WithLimits: %w", ErrDoor, err)
	}
	e, err := entrance.New(entrance.Config{
		Name: "invoke", Authenticate: r.authenticate, Requests: r.concurrency, Limits: limits, BodyLimit: r.bodyLimit,
		Origins: r.origins, Audit: r.audit, Clock: r.clock, Logger: r.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDoor, err)
	}
	return e, nil
}

// methods are the methods that scripts of other origins may use.
const methods = "POST, GET, OPTIONS"

func (r *rules) cors() entrance.CORS {
	allowed := append([]string{
		"Content-Type", HeaderLastEvent, headerIdempotency, HeaderSession, HeaderTranscript, HeaderControl,
		HeaderEmbeds, HeaderFormat, HeaderTrace, HeaderSpan, headerParent, headerBaggage,
	}, r.headers...)
	return entrance.CORS{
		Origins: r.origins, Methods: methods, Headers: strings.Join(allowed, ", "), Exposed: exposedHeaders,
	}
}

// refuse answers a request that the entrance refused.
func (c *exchange) refuse(r *entrance.Refusal) {
	r.SetHeader(c.w.Header())
	switch r.Status {
	case http.StatusRequestEntityTooLarge:
		c.invalid(r.Status, errBodySize.Error())
	case http.StatusUnsupportedMediaType:
		c.invalid(r.Status, errBodyType.Error())
	default:
		c.detail(r.Status, r.Text)
	}
}
