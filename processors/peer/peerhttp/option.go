package peerhttp

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/settings"
	"github.com/turntable-streams/turntable/processors/peer/wire"
)

// ErrConfig is wrapped by the errors of New, NewReplies and Replies.Run.
var ErrConfig = errors.New("peerhttp: bad configuration")

// Option configures New and NewReplies.
type Option func(*options)

type options struct {
	agents       *peer.Agents // nil: the agent of the group
	names        map[string]string
	appVersion   string
	authenticate auth.Authenticate
	openProxy    bool
	runTime      time.Duration
	auditAgent   string
	refusals     int
	concurrency  int
	limits       auth.Limits
	origins      []string
	headers      []string
	audit        auth.AuditSink
	clock        processors.Clock
	logger       *zap.Logger
	errs         []error
}

func newOptions(opts []Option) options {
	o := options{
		names: map[string]string{}, runTime: wire.MaxTimeout, refusals: 10, concurrency: 1024,
		clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func (o *options) invalid(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithAgents sets the agents that tasks of peers may be for, and the one of a task that names none (default: the agent of the
// group, for both). All others are answered with 404. With an empty defaultAgent, every task must name an agent. Give the
// group the same agents (peer.Config.Agents).
func WithAgents(agents []string, defaultAgent string) Option {
	return func(o *options) {
		for _, a := range append(slices.Clone(agents), defaultAgent) {
			if wire.Trim(a) != a {
				o.invalid("WithAgents: %q has blanks at its ends", a)
			}
		}
		if slices.Contains(agents, "") || len(agents) == 0 && defaultAgent == "" {
			o.invalid("WithAgents: an agent without an ID, or no agents")
		}
		o.agents = &peer.Agents{Default: defaultAgent, IDs: slices.Clone(agents)}
	}
}

// WithAgentName sets the name of an agent in the card (default: null).
func WithAgentName(agent, name string) Option {
	return func(o *options) { o.names[agent] = name }
}

// WithAppVersion sets appVersion of the card (default: empty).
func WithAppVersion(version string) Option { return func(o *options) { o.appVersion = version } }

// WithAuthenticate sets the authentication of ProxyPath (default: none, every request is answered with 401). A request for
// which a returns an error, or whose credential has ended, is answered with 401, and a caller without the right auth.Write with
// 403. Requests from pages of other origins are answered with 403, unless WithCORS names the origin, and the content type must
// be JSON (415). There is no exemption for local callers. a must not be nil.
func WithAuthenticate(a auth.Authenticate) Option {
	return func(o *options) {
		if a == nil {
			o.invalid("WithAuthenticate: nil")
		}
		o.authenticate = a
	}
}

// WithOpenProxy lets everyone use ProxyPath without authentication: to send tasks to all peers, with their tokens. It is for
// tests, and for a listener that only trusted programs reach. New logs a warning.
func WithOpenProxy() Option { return func(o *options) { o.openProxy = true } }

// WithRunTime sets how long the task of a peer may take (default 10 minutes, at least 1 s): the rule of the group that runs it
// (peer.Config.RunTime). The time of a request can shorten it. The door waits some seconds longer for the reply.
func WithRunTime(d time.Duration) Option {
	return func(o *options) {
		if d < time.Second {
			o.invalid("WithRunTime: %s, want at least 1s", d)
		}
		o.runTime = d
	}
}

// WithAuditAgent sets the agent whose audit gets the records of refused requests (default: the agent of the group). Set it to
// that of peer.Config.AuditAgent.
func WithAuditAgent(agent string) Option { return func(o *options) { o.auditAgent = agent } }

// WithRefusalRate sets how many records of refused requests are written per second for each label of a token, and for all
// requests without an accepted token together (default 10, at least 1). Further ones are only counted: the log has their
// number.
func WithRefusalRate(perSecond int) Option {
	return func(o *options) {
		if perSecond < 1 {
			o.invalid("WithRefusalRate: %d, want at least 1", perSecond)
		}
		o.refusals = perSecond
	}
}

// WithConcurrency sets the maximum number of concurrent requests, of peers and, counted separately, of callers of ProxyPath
// (default 1024, at least 1). Requests that wait count. Further requests get 503. How many tasks of peers run at the same time
// is in the settings.
func WithConcurrency(requests int) Option {
	return func(o *options) {
		if requests < 1 {
			o.invalid("WithConcurrency: %d, want at least 1", requests)
		}
		o.concurrency = requests
	}
}

// WithLimits sets the limits of each caller and of each session (default: 256 concurrent requests, 500 per second and a burst
// of 1000 per caller; 32 concurrent requests, 20 per second and a burst of 100 per session; bodies at 8 KiB per second at
// least, silence of 10 s; 10,000 keys; 62 MiB of bodies of peers, 64 MiB of those of the callers of ProxyPath, 16 MiB of one of
// these). A peer is the label of its token. A session is the parentSessionId of a request to ProxyPath.
func WithLimits(l auth.Limits) Option { return func(o *options) { o.limits = l } }

// WithCORS allows the scripts of an origin ("*" for any) to use the door, with cookies if the origin is named, and to send
// request headers besides Content-Type. The option may be repeated (default: none). Name Authorization and Prefer here if
// browsers send them.
func WithCORS(origin string, headers ...string) Option {
	return func(o *options) {
		if origin == "" {
			o.invalid("WithCORS: no origin")
		}
		o.origins, o.headers = append(o.origins, origin), append(o.headers, headers...)
	}
}

// WithAudit sets the receiver of events about tasks that were accepted, sent or cancelled, and requests that were refused
// (default: the logger). It is for the operator of this process. The audit of the instance is in {agent}-peer-audit. It must
// not be nil.
func WithAudit(sink auth.AuditSink) Option {
	return func(o *options) {
		if sink == nil {
			o.invalid("WithAudit: nil")
		}
		o.audit = sink
	}
}

// WithClock sets the clock for deadlines and waits (default: the system clock). It must not be nil.
func WithClock(c processors.Clock) Option {
	return func(o *options) {
		if c == nil {
			o.invalid("WithClock: nil")
			return
		}
		o.clock = c
	}
}

// WithLogger sets the logger (default: none). The contents of requests and replies, and tokens, are not logged. It must not be
// nil.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.invalid("WithLogger: nil")
			return
		}
		o.logger = l
	}
}

// entrance returns the entrance of peers, or that of the callers of ProxyPath. Its errors are those of the options.
func (o *options) entrance(name, agent string, a auth.Authenticate) *entrance.Entrance {
	c := entrance.Config{
		Door: auth.Door{
			Authenticate: a, Origins: o.origins, Headers: o.headers, BodyLimit: wire.MaxBody, Concurrency: o.concurrency, Limits: o.limits,
			Audit: o.audit, Clock: o.clock, Logger: o.logger,
		},
		Name: name, Agent: agent,
		CORS: entrance.CORS{Methods: "GET, POST, DELETE, OPTIONS", Exposed: "Location, Preference-Applied, Retry-After"},
	}
	if name == peersEntrance {
		c.Tokens, c.Media = true, []string{entrance.AnyMedia}       // peers say what they like of their bodies, which their tokens come with
		bodies := (settings.MaxConcurrent + 1) * (wire.MaxBody + 1) // the slots of tasks bound them
		c.Defaults = auth.Limits{BodyBytes: bodies, CallerBodyBytes: bodies}
	}
	var check bounds.Check
	e := entrance.New(&check, c)
	if err := check.Err(ErrConfig); err != nil {
		o.errs = append(o.errs, err)
	}
	return e
}
