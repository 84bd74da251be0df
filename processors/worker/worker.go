package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// Worker calls a handler for the records of some topics. Its methods are safe for concurrent use.
type Worker struct {
	config Config
	topics []string
	handle Handler

	mu      sync.Mutex
	mode    Mode // Auto until it is chosen
	source  source.Source
	lastErr error
	calls   map[*running]struct{}
}

// New returns a worker that handles the records of topics as a member of c.Group. It does not connect. A new group starts at
// the oldest record of each topic.
func New(topics []string, handle Handler, c Config) (*Worker, error) {
	if err := c.complete(topics, handle); err != nil {
		return nil, err
	}
	return &Worker{config: c, topics: slices.Clone(topics), handle: handle, calls: map[*running]struct{}{}}, nil
}

// Run handles records until ctx ends. Then it takes no more records, waits for running calls (Config.Grace), reports the
// outcome of their records to the broker and returns nil. opts are the connection options of processors.New; those for
// tables, topics and instances have no effect. Run waits for brokers and topics that are not available. It returns an error
// that wraps ErrConfig if the options are invalid, topics.ErrArchive (Config.Archive), and another error if retrying cannot help, for example after another
// process has fenced this static member. Calls must not overlap.
func (w *Worker) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	opts = append([]processors.Option{processors.WithLogger(w.config.Logger)}, opts...)
	conf, logger, err := processors.ClientConfig(brokers, opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	common := source.Config{
		Brokers: brokers, Group: w.config.Group, Topics: w.topics,
		Client:      func() *sarama.Config { return kafka.Copy(conf) },
		Concurrency: w.config.Concurrency, Waiting: w.config.Waiting, Crowded: w.crowded, Clock: w.config.Clock, Logger: logger,
	}
	if err := w.archived(ctx, common); err != nil || ctx.Err() != nil {
		return err
	}
	mode, err := w.choose(ctx, common)
	if err != nil || ctx.Err() != nil {
		return err
	}
	return w.serve(ctx, w.sourceOf(mode, common), logger)
}

// serve runs a source until ctx ends.
func (w *Worker) serve(ctx context.Context, from source.Source, logger *zap.Logger) error {
	w.mu.Lock()
	w.source = from
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.source = nil
	}()
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	ended := make(chan struct{})
	var grace sync.WaitGroup
	defer grace.Wait()
	defer close(ended)
	grace.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
			return
		}
		timer := w.config.Clock.NewTicker(w.config.Grace)
		defer timer.Stop()
		select {
		case <-timer.C():
			stop(ErrStopping)
		case <-ended:
		}
	})
	c := &core{Worker: w, work: work, stop: ctx, logger: logger.With(zap.String("group", w.config.Group))}
	if err := from.Run(ctx, c.deliver); err != nil {
		return fmt.Errorf("worker: group %s: %w", w.config.Group, err)
	}
	return nil
}
