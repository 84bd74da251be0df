package embedded

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
)

// clusterID is how processors know this broker (kafka.EmbeddedCluster). Directories keep it.
const clusterID = "kfake"

// minSessionTimeout allows tests a session timeout of one second; a broker's default minimum is six.
const minSessionTimeout = time.Second

// Config configures a broker. The zero value is a broker in memory.
type Config struct {
	// Directory keeps topics, records, committed offsets and static group members. It is created if it is missing. One broker at a
	// time can use it: see ErrLocked. Empty: they are in memory.
	Directory string
	// Partitions is the number of partitions of topics that are created with the broker's default, as processors do here: the
	// broker is one process, on which more partitions only take time. Less than 1 is 1.
	Partitions int
	// RecordLock is how long a record of a share group is locked without a renewal, in whole milliseconds. The broker has one lock for
	// all groups and ignores the setting of a group. 0 is Kafka's default, 30 s.
	RecordLock time.Duration
	// Logger logs the broker's warnings and errors. Nil logs nothing.
	Logger *zap.Logger
}

// Broker is a running broker. Its methods are safe for concurrent use.
type Broker struct {
	cluster *kfake.Cluster
	addrs   []string
	lock    *lock
	close   func() error
}

// Start starts a broker, which listens when Start returns. The caller closes it. If another broker uses the directory,
// the error wraps ErrLocked and names the directory.
func Start(c Config) (*Broker, error) {
	l, err := acquire(c.Directory)
	if err != nil {
		return nil, err
	}
	cluster, err := kfake.NewCluster(c.options()...)
	if err != nil {
		l.release()
		return nil, fmt.Errorf("embedded: start the broker: %w", err)
	}
	b := &Broker{cluster: cluster, addrs: cluster.ListenAddrs(), lock: l}
	b.close = sync.OnceValue(func() error {
		cluster.Close()
		return l.release()
	})
	return b, nil
}

func (c Config) options() []kfake.Opt {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	// A client asks for the replication its cluster has; here that is one.
	configs := map[string]string{"default.replication.factor": "1"}
	if c.RecordLock > 0 {
		configs["group.share.record.lock.duration.ms"] = strconv.FormatInt(c.RecordLock.Milliseconds(), 10)
		configs["share.record.lock.sweep.interval.ms"] = "50"
	}
	opts := []kfake.Opt{
		kfake.ClusterID(clusterID),
		kfake.NumBrokers(1),
		kfake.DefaultNumPartitions(max(c.Partitions, 1)),
		kfake.GroupMinSessionTimeout(minSessionTimeout),
		kfake.WithLogger(logger{c.Logger.Sugar()}),
		kfake.BrokerConfigs(configs),
	}
	if c.Directory != "" {
		opts = append(opts, kfake.DataDir(c.Directory))
	}
	return opts
}

// Addrs returns the bootstrap addresses, host:port. The port differs at every start.
func (b *Broker) Addrs() []string { return append([]string(nil), b.addrs...) }

// Cluster returns the cluster behind the broker, for tests that inject faults. Close ends it.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close stops the broker, writes unsaved records to the directory and unlocks it. It disconnects clients; close them
// first, because the next start waits for group members that did not leave. Further calls return the first result.
func (b *Broker) Close() error { return b.close() }

// logger passes on warnings and errors. The broker's log of every request is dropped.
type logger struct{ to *zap.SugaredLogger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		l.to.Errorf(format, args...)
	case kfake.LogLevelWarn:
		l.to.Warnf(format, args...)
	}
}
