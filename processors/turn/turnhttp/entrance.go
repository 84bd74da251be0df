package turnhttp

import (
	"net/http"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// entrance returns the entrance of one path. Its errors are those of the options.
func (o *options) entrance(c entrance.Config) *entrance.Entrance {
	c.Door = auth.Door{
		Authenticate: c.Authenticate, Origins: c.Origins, Headers: o.headers, BodyLimit: o.bodyLimit, Concurrency: o.concurrency, Limits: o.limits,
		Audit: o.audit, Clock: o.clock, Logger: o.logger,
	}
	var check bounds.Check
	e := entrance.New(&check, c)
	if err := check.Err(ErrConfig); err != nil {
		o.errs = append(o.errs, err)
	}
	return e
}

// refused returns the answer to a request that its entrance refused.
func refused(w http.ResponseWriter, r *entrance.Refusal) answer {
	r.SetHeader(w.Header())
	return errorAnswer(r.Status, r.Text)
}
