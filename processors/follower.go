package processors

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// Inbound is a record that a worker or a Follower read. The handler that receives it owns its bytes.
type Inbound struct {
	Topic     string
	Partition int32
	Offset    int64
	// Timestamp is the record's timestamp as its producer or the broker set it.
	Timestamp time.Time
	// Key and Value are nil for a Kafka null.
	Key, Value []byte
	// Headers are in the record's order. A name may occur several times.
	Headers []Header
}

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Header returns the value of the first header with this name, or nil if there is none.
func (r Inbound) Header(name string) []byte {
	for _, h := range r.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return nil
}

func inboundOf(m *sarama.ConsumerMessage) Inbound {
	r := Inbound{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Key: m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, Header{string(h.Key), h.Value})
	}
	return r
}

// ErrNotFollowing is returned by Follower.Replay while Run is not connected to the brokers.
var ErrNotFollowing = errors.New("processors: the follower is not running")

// Follower reads all partitions of some topics from their ends, committed records only. Every process with a Follower gets
// every record. Use it for records that must reach the process that waits for them, such as the one that serves an HTTP
// request, whichever instance handles their partition. A Follower is not a member of a group and commits no offsets. One
// per process is enough; its methods are safe for concurrent use.
type Follower struct {
	brokers []string
	topics  []string
	handle  func(Inbound)
	conf    *sarama.Config
	logger  *zap.Logger
	whole   bool // reads from the beginning

	ready     chan struct{} // closed when every partition is read
	readyOnce sync.Once

	mu     sync.Mutex
	client sarama.Client   // of replays; nil while Run is not connected
	over   context.Context // ends when client is closed
	usage  sync.WaitGroup

	progress progress
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

func (f *Follower) connect(ctx context.Context, client sarama.Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.client, f.over = client, ctx
}

// disconnect closes the client of replays after the last replay has ended.
func (f *Follower) disconnect(client sarama.Client) {
	f.mu.Lock()
	f.client, f.over = nil, nil
	f.mu.Unlock()
	f.usage.Wait()
	f.close(client)
}

// use returns the client of replays, and ctx as a context that ends with the client too. The client stays open until the
// caller calls done.
func (f *Follower) use(ctx context.Context) (_ sarama.Client, _ context.Context, done func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client == nil {
		return nil, nil, nil, ErrNotFollowing
	}
	f.usage.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(f.over, cancel)
	return f.client, ctx, func() {
		stop()
		cancel()
		f.usage.Done()
	}, nil
}

func (f *Follower) close(client sarama.Client) {
	if err := client.Close(); err != nil && !errors.Is(err, sarama.ErrClosedClient) {
		f.logger.Warn("follower cannot close its connections", zap.Error(err))
	}
}

// drain closes a partition's consumer and waits until it has stopped.
func drain(claim sarama.PartitionConsumer) {
	claim.AsyncClose()
	for range claim.Messages() { // discard records that were fetched already
	}
}
