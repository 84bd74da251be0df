package sink

import (
	"errors"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of New and Run about an invalid agent name, configuration or connection setting.
var ErrConfig = errors.New("sink: invalid configuration")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Config is that of the worker that reads the attempts. Its Timeout, Limits, DeadLetter and Drop must be zero. What
	// differs:
	//
	// Group is "{agent}-delivery-sink" by default, with Peers "{agent}-peer-sink".
	//
	// Concurrency is how many attempts may be in flight in this sink (default 256).
	//
	// ReadAhead is 10,000 by default.
	//
	// Grace is how long attempts may continue after the sink stops (default 10 s, with Peers 25 s). Attempts that take longer are
	// interrupted and retried. The platform must not kill the process earlier.
	//
	// Clock is compared with leases. It should differ from the delivery processor's clock by a few seconds at most. Bodies, tokens
	// and addresses are never logged.
	worker.Config
	// Transports are those of the kinds of routes (topics.KindHTTP, ...). At least one is required. Deliveries of a kind without a
	// transport get a refused receipt.
	Transports map[string]Transport
	// RouteLimit is how many attempts on one route may be in flight in this sink (default 32).
	RouteLimit int
	// Peers makes the sink read {agent}-peer-attempts and write {agent}-peer-receipts: it sends the tasks that the agent delegates to
	// other instances. If there are peers that are not idempotent, set Grace to the longest time that their tasks take: a task of
	// theirs that a deployment interrupts ends with outcome_unknown. A program that makes both kinds of attempts runs two sinks.
	Peers bool
	// Name is the sink's name in its receipts (default: host name and process ID). It must be unique among the sinks of an agent,
	// because the delivery group keeps one count of attempts in flight per name.
	Name string
}

// deferring is how many records are handled concurrently in addition to the attempts. They get a deferred receipt immediately.
const deferring = 32

// complete fills the fields that are zero, and checks the others.
func (c *Config) complete(catalog topics.Catalog, check *bounds.Check) {
	group, grace := catalog.SinkGroup(), 10*time.Second
	if c.Peers {
		group, grace = catalog.PeerSinkGroup(), 25*time.Second // a platform usually kills a process 30 s after it asked it to stop
	}
	if c.Group == "" {
		c.Group = group
	}
	c.Archive = catalog.Archive()
	bounds.AtLeast(check, "Concurrency", &c.Concurrency, 256, 1)
	bounds.AtLeast(check, "RouteLimit", &c.RouteLimit, 32, 1)
	bounds.AtLeast(check, "ReadAhead", &c.ReadAhead, 10_000, 1)
	bounds.AtLeast(check, "Grace", &c.Grace, grace, time.Millisecond)
	if c.Timeout != 0 || c.Limits != nil || c.DeadLetter != nil || c.Drop {
		check.Wrong("Config", "sets Timeout, Limits, DeadLetter or Drop, which are the sink's own")
	}
	if len(c.Transports) == 0 {
		check.Wrong("Transports", "is empty")
	}
	for kind, t := range c.Transports {
		if kind == "" || t == nil {
			check.Wrong("Transports", "has an empty kind, or a transport that is nil")
		}
	}
	if c.Name == "" {
		c.Name = processName()
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
}

// processName returns the default name of a sink in its receipts.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "sink"
	}
	return host + "-" + strconv.Itoa(os.Getpid())
}
