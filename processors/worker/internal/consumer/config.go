package consumer

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// ErrConfig is wrapped by the errors about a configuration that no broker accepts.
var ErrConfig = errors.New("consumer: bad configuration")

// Config configures a Source. The core validates it: no field of source.Config has its zero value.
type Config struct {
	source.Config
	// Handover is how long a call may continue after its partition was revoked. The new owner of the partition defers the
	// record one second longer. Default: 1 minute.
	Handover time.Duration
	// ReadAhead is how many records of a partition may be read from the first one that is not settled. Default: 1000.
	ReadAhead int
	// Ordered handles records with the same key one after another, in the order of their offsets. Records without a key are
	// not ordered.
	Ordered bool
	// InstanceID makes the member static: when it stops, it keeps its partitions for the session timeout, and a restart with
	// the same ID causes no rebalance. Default: a dynamic member, which leaves the group when it stops.
	InstanceID string
}

const (
	defaultHandover  = time.Minute
	defaultReadAhead = 1000
)

func (c Config) withDefaults() Config {
	if c.Handover == 0 {
		c.Handover = defaultHandover
	}
	if c.ReadAhead == 0 {
		c.ReadAhead = defaultReadAhead
	}
	return c
}

// membership returns the configuration of the client that joins the group and reads records.
func (c Config) membership() *sarama.Config {
	conf := c.Client()
	conf.Consumer.Return.Errors = true
	conf.Consumer.Offsets.AutoCommit.Enable = false // offsets commits
	conf.Consumer.Group.InstanceId = c.InstanceID
	// Goka's default sets Strategy, which hides GroupStrategies. The group uses the first assignor that all members offer:
	// clients in other languages have range or roundrobin, and workers of earlier versions only Goka's.
	conf.Consumer.Group.Rebalance.Strategy = nil
	conf.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
		sarama.NewBalanceStrategySticky(), sarama.NewBalanceStrategyRange(), sarama.NewBalanceStrategyRoundRobin(),
		goka.CopartitioningStrategy,
	}
	return conf
}

// leaseLimit is how long a member starts calls after its group has answered it last. The group removes a member that is
// silent for longer than the session timeout, or that does not join again within the rebalance timeout.
func (c Config) leaseLimit() time.Duration {
	group := c.membership().Consumer.Group
	return min(group.Session.Timeout, group.Rebalance.Timeout) * 3 / 4
}

// lateness is how long after its failure a commit may still arrive at the coordinator: what the coordinator has not read by the
// end of the session timeout is of a member that it has removed.
func (c Config) lateness() time.Duration { return c.membership().Consumer.Group.Session.Timeout }

// requestTimeout bounds requests for offsets. A rebalance waits for the last commit of a claim.
const requestTimeout = 5 * time.Second

// committing returns the configuration of the client that reads and commits offsets.
func (c Config) committing() *sarama.Config {
	conf := c.Client()
	conf.Net.DialTimeout = min(conf.Net.DialTimeout, requestTimeout)
	conf.Net.ReadTimeout = min(conf.Net.ReadTimeout, requestTimeout)
	conf.Net.WriteTimeout = min(conf.Net.WriteTimeout, requestTimeout)
	return conf
}
