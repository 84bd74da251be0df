package peerhttp

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/internal/admission"
)

// ErrConfig is wrapped by the errors of New, NewReplies and Replies.Run.
var ErrConfig = errors.New("peerhttp: invalid configuration")

// Config configures NewReplies and New. Fields that are zero have their defaults. NewReplies uses Logger only, which is the default of New.
type Config struct {
	// Door is the configuration of the door. Peers have the tokens of the settings; Authenticate is for ProxyPath, whose callers need
	// the right auth.Write. Without it every request there is answered with 401, also from the same machine, unless OpenProxy is set.
	//
	// Concurrency counts the requests of peers and of callers of ProxyPath separately; how many tasks of peers run at the same time is
	// in the settings. In Limits, a peer is the label of its token, and a session the parentSessionId of a request to ProxyPath; the
	// bodies of peers may take 62 MiB by default, also those of one. BodyLimit is at most 1,000,000 bytes, its default. Audit is for
	// the operator of this process; the audit of the instance is in {agent}-peer-audit. Name Prefer in Headers if browsers send it.
	auth.Door
	// OpenProxy lets everyone use ProxyPath without authentication: to send tasks to all peers, with their tokens. It is for tests, and
	// for a listener that only trusted programs reach. New logs a warning. It excludes Authenticate.
	OpenProxy bool
	// Agents are the agents that tasks of peers may be for, and DefaultAgent is the one of a task that names none (default: the agent
	// of the group, for both). All others are answered with 404. If Agents is set and DefaultAgent is empty, every task must name an
	// agent. Give the group the same agents (peer.Config.Agents).
	Agents       []string
	DefaultAgent string
	// AgentNames are the names of agents in the card, by their IDs (default: null).
	AgentNames map[string]string
	// AppVersion is appVersion of the card.
	AppVersion string
	// RunTime is how long the task of a peer may take (default 10 minutes, at least 1 s): the rule of the group that runs it
	// (peer.Config.RunTime). The time of a request can shorten it. The door waits some seconds longer for the reply.
	RunTime time.Duration
	// AuditAgent is the agent whose audit gets the records of refused requests (default: the agent of the group). Set it to that of
	// peer.Config.AuditAgent.
	AuditAgent string
	// RefusalRate is how many records of refused requests are written per second for each label of a token, and for all requests
	// without an accepted token together (default 10, at least 1). Further ones are only counted: the log has their number.
	RefusalRate int
}

func (c *Config) complete(check *bounds.Check) {
	bounds.Between(check, "BodyLimit", &c.BodyLimit, peerwire.MaxBody, 1, peerwire.MaxBody)
	entrance.Complete(check, &c.Door)
	if c.Authenticate != nil && c.OpenProxy {
		check.Wrong("OpenProxy", "excludes Authenticate")
	}
	for _, a := range append(slices.Clone(c.Agents), c.DefaultAgent) {
		if peerwire.Trim(a) != a {
			check.Wrong("Agents", "has %q with blanks at its ends", a)
		}
	}
	if slices.Contains(c.Agents, "") {
		check.Wrong("Agents", "has an agent without an ID")
	}
	bounds.AtLeast(check, "RunTime", &c.RunTime, peerwire.MaxTimeout, time.Second)
	bounds.AtLeast(check, "RefusalRate", &c.RefusalRate, 10, 1)
}

// agents are those that tasks of peers may be for.
func (c *Config) agents(group string) admission.Agents {
	if len(c.Agents) == 0 && c.DefaultAgent == "" {
		return admission.Agents{Default: group, IDs: []string{group}}
	}
	return admission.Agents{Default: c.DefaultAgent, IDs: slices.Clone(c.Agents)}
}

// entrances returns the entrance of peers, and that of the callers of ProxyPath.
func (c *Config) entrances(check *bounds.Check, agent string) (peers, callers *entrance.Entrance) {
	cors := entrance.CORS{Methods: "GET, POST, DELETE, OPTIONS", Exposed: "Location, Preference-Applied, Retry-After"}
	proxy, tokens := c.Door, c.Door
	if proxy.Authenticate == nil && !c.OpenProxy {
		proxy.Authenticate = func(*http.Request) (auth.Caller, error) { return auth.Caller{}, auth.ErrNoCredential }
	}
	tokens.Authenticate = nil
	const bodies = (peer.MaxConcurrent + 1) * (peerwire.MaxBody + 1) // the slots of tasks bound them
	peers = entrance.New(check, entrance.Config{
		Door: tokens, Name: peersEntrance, Agent: agent, CORS: cors, Defaults: auth.Limits{BodyBytes: bodies, CallerBodyBytes: bodies},
		Tokens: true, Media: []string{entrance.AnyMedia}, // peers say what they like of their bodies, which their tokens come with
	})
	return peers, entrance.New(check, entrance.Config{Door: proxy, Name: proxyEntrance, Agent: agent, CORS: cors})
}
