package share

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka/franz"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// Config configures New.
type Config struct {
	source.Config
	// Lock is how long the broker locks a record without a renewal. The broker limits it, to 15 to 60 s by default.
	Lock time.Duration
}

// flushLimit bounds how long a stop waits for brokers that do not confirm verdicts.
const flushLimit = 5 * time.Second

// Source implements source.Source.
type Source struct {
	config Config
	logger *zap.Logger
	// joining and requests warn while the group cannot be joined, and of requests that fail.
	joining, requests *retry.Warning

	mu     sync.Mutex
	status source.Status
}

// New returns a source. It does not connect.
func New(c Config) *Source {
	log := c.Logger.With(zap.String("group", c.Group))
	return &Source{
		config: c, logger: log,
		joining:  retry.NewWarning(log, nil, "worker cannot join its share group, retrying", "worker can join its share group"),
		requests: retry.NewWarning(log, nil, "share group request failed, retrying", ""),
	}
}

// Status implements source.Source.
func (s *Source) Status() source.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *Source) joined(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Joined = yes
}

func (s *Source) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Err = err
}

// Run implements source.Source.
func (s *Source) Run(ctx context.Context, handle source.Handle) error {
	client, err := franz.Dial(s.config.Brokers, s.config.Client())
	if err != nil {
		return err
	}
	defer client.Close()
	limit, err := s.prepare(ctx, client)
	if ctx.Err() != nil || err != nil {
		return err
	}
	m := &member{
		Source: s, client: client, handle: handle, id: memberID(), limit: limit, refresh: make(chan struct{}, 1),
		held: map[place]*held{}, sessions: map[int32]*session{},
		free: s.config.Concurrency, space: s.config.Concurrency + s.config.Waiting,
	}
	return m.serve(ctx)
}

// prepare waits for the topics and the brokers, sets the group's configuration and returns its limit of deliveries.
func (s *Source) prepare(ctx context.Context, client *kgo.Client) (limit int, err error) {
	wait := newBackoff()
	for ctx.Err() == nil {
		if _, err = topicsOf(ctx, client, s.config.Topics); err == nil {
			if err = configure(ctx, client, s.config.Group, s.config.Lock, s.logger); err == nil {
				limit, err = deliveryLimit(ctx, client, s.config.Group)
			}
		}
		if err == nil {
			s.joining.Over()
			return limit, nil
		}
		if ctx.Err() == nil {
			s.failed(err)
			s.joining.Failed(err)
		}
		wait.sleep(ctx)
	}
	return 0, nil
}

// memberID returns a random ID in Kafka's form: 16 bytes in base64.
func memberID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never returns an error
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// backoff is an exponential wait between retries.
type backoff struct{ next time.Duration }

const (
	shortestWait = 50 * time.Millisecond
	longestWait  = 5 * time.Second
)

func newBackoff() *backoff { return &backoff{shortestWait} }

func (b *backoff) reset() { b.next = shortestWait }

// sleep waits until the next retry or until ctx ends.
func (b *backoff) sleep(ctx context.Context) {
	timer := time.NewTimer(b.next)
	defer timer.Stop()
	b.next = min(2*b.next, longestWait)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
