package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka/franz"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Config says whose topics are saved, restored or moved, and where they are.
type Config struct {
	// Brokers are the addresses of Kafka.
	Brokers []string
	// Kafka are the options of the agent's processors for the connection: TLS, SASL, properties, and the logger of the progress.
	Kafka []processors.Option
	// Catalog has the topics of the agent (agent.Agent.Topics). Those that exist belong to the set, also of capabilities that are off.
	Catalog topics.Catalog
	// Specs are topics of graphs of your own, as in processors.WithTopicSpecs. The table and the loop topic of every group that
	// has committed offsets in a topic of the set belong to the set without being named.
	Specs []topics.Spec
	// Replication is the replication factor of the topics that Restore and Repartition create, for a cluster of another size. 0 is
	// that of the saved topics.
	Replication int16
}

// The reasons why a call refuses to run or to continue. The text names what to do.
var (
	// ErrConfig says that the configuration or an argument is wrong.
	ErrConfig = errors.New("archive: bad configuration")
	// ErrRunning says that a group of the agent has members: stop all its processes.
	ErrRunning = errors.New("archive: the agent is running")
	// ErrChanged says that records or offsets were written since the call began.
	ErrChanged = errors.New("archive: the agent has changed meanwhile")
	// ErrForeign says that a topic which is to be filled has records of somebody else.
	ErrForeign = errors.New("archive: the topic has other records")
	// ErrDirectory says that a directory is not a complete backup, or not one that can be continued.
	ErrDirectory = errors.New("archive: bad directory")
	// ErrTaken says that another process has taken over the work of this one, which has stopped.
	ErrTaken = errors.New("archive: another process has taken over")
	// ErrUnfinished says that another restore or repartition of the agent has begun and must be finished first.
	ErrUnfinished = errors.New("archive: another restore or repartition is not finished")
)

// Result is what a call has done. A call that continues an earlier one counts its own records only.
type Result struct {
	Topics  int
	Records int64
	// Repeated are records that a group reads for a second time, because groups with different backlogs read the same topic.
	Repeated int64
}

// cluster is a connection to the brokers.
type cluster struct {
	Config
	client *kgo.Client
	admin  *kadm.Client
	log    *zap.Logger
	known  map[string]kadm.TopicDetail // the leaders of topics that are read
	at     func(step string) error     // called at each step, for tests
}

// connect connects, with options for the client. The caller closes it.
func connect(cfg Config, more ...kgo.Opt) (*cluster, error) {
	if cfg.Catalog.Agent == "" {
		return nil, fmt.Errorf("%w: Catalog is empty", ErrConfig)
	}
	if cfg.Replication < 0 {
		return nil, fmt.Errorf("%w: Replication is %d, want at least 1, or 0 for that of the saved topics", ErrConfig, cfg.Replication)
	}
	conf, log, err := processors.ClientConfig(cfg.Brokers, cfg.Kafka...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	client, err := franz.Dial(cfg.Brokers, conf, append([]kgo.Opt{
		kgo.MetadataMinAge(20 * time.Millisecond), kgo.UnknownTopicRetries(-1),
	}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return &cluster{
		Config: cfg, client: client, admin: kadm.NewClient(client), at: func(string) error { return nil },
		known: map[string]kadm.TopicDetail{}, log: log.With(zap.String("agent", cfg.Catalog.Agent)),
	}, nil
}

// The limits of waits for the brokers.
const (
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
	patience  = time.Minute // for one request that brokers refuse for the moment
)

// retry calls do until it succeeds, while the brokers refuse for the moment: a leader moves, an offset is part of a transaction
// that has not ended. The error names what failed, on what, and the missing right.
func (c *cluster) retry(ctx context.Context, what, of string, do func() error) error {
	begun := time.Now()
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("archive: %s %s: %w", what, of, errors.Join(context.Cause(ctx), err))
		case !passes(err) || time.Since(begun) > patience:
			return fmt.Errorf("archive: %s %s: %w%s", what, of, err, remedy(err, of))
		}
		c.log.Debug("the brokers refuse, retrying", zap.String("request", what), zap.String("of", of), zap.Error(err))
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("archive: %s %s: %w", what, of, err)
		}
	}
}

// passes reports whether an error may be over soon.
func passes(err error) bool {
	return kerr.IsRetriable(err) || kgo.IsRetryableBrokerErr(err) || errors.Is(err, kerr.UnstableOffsetCommit) ||
		errors.Is(err, kerr.ConcurrentTransactions) || errors.Is(err, errThrottled) || errors.Is(err, kerr.UnknownTopicOrPartition)
}

// remedy says which right is missing.
func remedy(err error, of string) string {
	rights := ""
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		rights = "READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, ALTER_CONFIGS and DESCRIBE_CONFIGS on the topic " + of
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		rights = "READ, DESCRIBE and DELETE on the group " + of
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		rights = "WRITE and DESCRIBE on the transactional ID " + of
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		rights = "CREATE and DESCRIBE on the cluster"
	default:
		return ""
	}
	return ": the principal needs " + rights + "; grant them and run the same command again, which continues"
}

// pause waits, or returns why ctx has ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
