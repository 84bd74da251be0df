package crewhttp

import (
	"crypto/rand"

	"github.com/turntable-streams/turntable/internal/bounds"
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

// entrance returns an entrance of the door for a number of open requests. Its errors are those of the options.
func (o *options) entrance(agent, name string, open int, cors entrance.CORS) *entrance.Entrance {
	var check bounds.Check
	e := entrance.New(&check, entrance.Config{
		Door: auth.Door{
			Authenticate: o.authenticate, Origins: o.origins, Hosts: o.hosts, BodyLimit: o.bodyLimit, Concurrency: open, Limits: o.limits,
			Audit: o.audit, Clock: o.clock, Logger: o.logger,
		},
		Name: name, Agent: agent, Defaults: auth.Limits{Session: auth.Share{Open: 64, PerSecond: 50, Burst: 200}},
		CORS: cors,
	})
	if err := check.Err(ErrConfig); err != nil {
		o.errs = append(o.errs, err)
	}
	return e
}
