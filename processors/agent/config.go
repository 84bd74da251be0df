package agent

import (
	"net/http"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// Config configures an agent. Only Model is required. Each capability is switched on by one field; the topics, the options of
// the turn, the groups, the workers and the doors that it needs follow from that. All processes of an agent must have the same
// capabilities.
type Config struct {
	// Model answers the steps of the turns. If it is also a think.Streamer, as the adapters for providers and think.StreamFunc
	// are, its text is streamed. If it is a think.ToolUser, it is given the Tools and those of Delegates and Peers. Other
	// processes may have other workers for the model, in any language, that write no stream of events of their own. think.Fallback
	// makes one model of several.
	Model think.Model
	// Tools are what the model can call (default none). The call of another tool is answered with an error.
	Tools []tools.Tool
	// CallbackSecret signs the tokens with which tools answer later (tools.Pending, tools.Call.Token): at least
	// token.MinSecret (32) bytes. Default: there are no tokens.
	CallbackSecret string

	// Approval says which calls of tools wait for a person, who decides at /api/gates, on /invoke or on the WebSocket (default:
	// none waits).
	Approval *approval.Policy
	// Compactor summarizes the exchanges of long sessions that the model is no longer sent (default: they are hidden without
	// a summary).
	Compactor compact.Compactor
	// Memory keeps what is to be remembered of users between sessions (default: nothing is).
	Memory *Memory
	// Costs adds up what the answers of the model cost, for sessions, users and tenants. Budgets include it.
	Costs bool
	// Budgets bound the costs of users and tenants (default: they are unbounded). Budgets.Tenant needs Tenant.
	Budgets turn.Budgets
	// Tenant returns the tenant that a user belongs to, see turn.Config.Tenants.
	Tenant func(user string) string
	// Latencies adds up how long the calls of each tool take.
	Latencies bool
	// Deliver sends answers to the services that messages name in reply (default: such messages are refused).
	Deliver *Deliver
	// Channels are the platforms on which people write to the agent: Slack, Teams, mail and others (default none).
	Channels *Channels
	// Delegates are the agents of the same brokers that this one may give tasks to, and that may give it some (default none).
	// Each needs Delegates, too. The agent itself may be among them. The model calls the tool delegation.SendTool. The result of a task
	// is announced where it was asked for: on the platform, or in the session (delegation.Config.Sessions).
	Delegates []string
	// Peers returns the other instances to exchange tasks with, for example peer.SettingsFile.Settings (default: none). It is
	// called for each task. The model calls the tool of peer.Tool.
	Peers func() *peer.Settings
	// Turn configures the turn, for what has no field here.
	Turn turn.Config

	// Listen is the address of the doors, for example "127.0.0.1:8080" (default: Handler serves them, or nothing does).
	Listen string
	// Pages serves the paths that no door has, to everyone, for example a page that uses the doors (default: they are not found).
	Pages http.Handler
	// Authenticate says who a caller of the doors is. Without it everyone who reaches the address may do everything: New refuses
	// an address in Listen that other machines can reach, unless Open is set.
	Authenticate auth.Authenticate
	Open         bool
	// Origins are the web pages of other sites that may use the doors, for example "https://app.example.com".
	Origins []string
	// TrustedProxies are the proxies in front of the doors whose X-Forwarded-For says who the client is (default none): limits
	// count clients by their address.
	TrustedProxies []netip.Prefix

	// Console is the page for operators: console.Config{} of package console, which is served at /console/ (default none: a program with
	// it is 18 MB larger). Without Authenticate it only shows, unless Open is set.
	Console Console

	// Brokers are the addresses of Kafka. Default: KAFKA_BOOTSTRAP_SERVERS, with the other variables of
	// processors.FromEnviron. Without either, the agent runs a broker in its own process, whose records are gone when it ends
	// (with StateDir they stay): for development.
	Brokers []string
	// Kafka are options of all groups and clients, for example processors.WithGuarantee or processors.WithPartitions.
	Kafka []processors.Option
	// StateDir is the directory of the local copies of the tables, one below it for each group (default: they are in memory,
	// and a start reads them from Kafka).
	StateDir string
	// Logger gets what happens (default: warnings and errors, on standard error).
	Logger *zap.Logger
	// Parts are the parts that run in this process (default: all).
	Parts Part
}

// Memory configures the memory of users.
type Memory struct {
	// Updater adds what a session has said to the memory of its user. Required. See package memoir/model for one that asks a
	// model.
	Updater updater.Updater
	// After is how long a session has no record before it ends and is remembered (default 30 minutes).
	After time.Duration
}

// Deliver configures the delivery of answers.
type Deliver struct {
	// Services are the services that messages may name, with their addresses. Required.
	Services sink.Services
	// Config configures the deliveries, such as their retries.
	Config delivery.Config
}

// Part is a set of the parts of an agent.
type Part uint8

// The parts. Each can run in other processes, and in several.
const (
	Groups  Part = 1 << iota // the groups with the tables: of turns, gates, batches, deliveries, memories, costs, tasks
	Workers                  // the model, the tools, the compactor and the updater of memories
	Senders                  // what sends answers to services and channels, and tasks to peers
	Doors                    // HTTP: /invoke, chat, callbacks, gates, WebSocket, channels, tasks of peers and delegates, health
)

const allParts = Groups | Workers | Senders | Doors

func (p Part) has(part Part) bool { return p&part != 0 }
