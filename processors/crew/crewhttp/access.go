package crewhttp

import (
	"crypto/rand"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// mayUse reports whether a caller may use a crew. What belongs to no crew, such as the event of a repository without agents, is
// for callers that may use every crew: it tries one that does not exist.
func mayUse(c auth.Caller, crew string) bool {
	if crew == "" {
		crew = rand.Text()
	}
	return c.Allowed(crew)
}

// governs reports whether a caller may control all crews.
func governs(c auth.Caller) bool { return c.Can(auth.Control) && mayUse(c, "") }

func (o *options) cors() entrance.CORS {
	return entrance.CORS{
		Origins: o.origins, Methods: "GET, POST, DELETE, OPTIONS", Headers: "Authorization, Content-Type, " + idempotencyHeader,
	}
}

// entrance returns an entrance of the door for a number of open requests. Its errors are those of the options.
func (o *options) entrance(agent, name string, open int) *entrance.Entrance {
	defaults := entrance.DefaultLimits(o.bodyLimit)
	defaults.Session = auth.Share{Open: 64, PerSecond: 50, Burst: 200}
	limits, err := o.limits.Or(defaults)
	if err != nil {
		o.invalid("WithLimits: %w", err)
		return nil
	}
	e, err := entrance.New(entrance.Config{
		Name: name, Agent: agent, Authenticate: o.authenticate, Requests: max(open, 1), Limits: limits, BodyLimit: o.bodyLimit,
		Origins: o.origins, Hosts: o.hosts, Audit: o.audit, Clock: o.clock, Logger: o.logger,
	})
	if err != nil {
		o.invalid("%w", err)
	}
	return e
}
