package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka/franz"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer"
	"github.com/turntable-streams/turntable/processors/worker/internal/share"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
	"github.com/turntable-streams/turntable/topics"
)

// Mode is how a worker gets its records from Kafka. All workers of a group use the same one; brokers reject the others.
type Mode int

const (
	// Auto uses a share group if the broker offers share groups (Kafka 4.2 and later), the group has no committed offsets
	// of a consumer group, and no option needs a consumer group; otherwise it uses a consumer group. The worker logs its
	// choice and the limitations of the mode.
	Auto Mode = iota
	// ShareGroup locks each record for one worker, for any number of workers per partition. No call stops while workers
	// join or leave, and a crash repeats only the calls that were running.
	ShareGroup
	// ConsumerGroup assigns partitions to workers. A partition pauses during a rebalance, and a group has at most as many
	// busy workers as partitions.
	ConsumerGroup
)

// String returns the name of the mode.
func (m Mode) String() string {
	switch m {
	case Auto:
		return "auto"
	case ShareGroup:
		return "share group"
	case ConsumerGroup:
		return "consumer group"
	default:
		return fmt.Sprintf("Mode(%d)", int(m))
	}
}

// What a mode cannot do, for the log.
const (
	shareLimits    = "records are not ordered; the broker delivers a record a limited number of times, then the worker dead-letters it"
	consumerLimits = "a group has at most as many busy workers as partitions, and a partition pauses during a rebalance"
)

// choose returns the mode, after asking the brokers if it is Auto. It waits for brokers that are unavailable.
func (w *Worker) choose(ctx context.Context, c source.Config) (Mode, error) {
	mode, reason := w.config.Mode, "Mode"
	switch {
	case mode != Auto:
	case w.config.Ordered || w.config.InstanceID != "":
		mode, reason = ConsumerGroup, "Ordered or InstanceID"
	default:
		found, err := w.probe(ctx, c)
		if err != nil || ctx.Err() != nil {
			return Auto, err
		}
		mode, reason = ConsumerGroup, found.Reason
		if found.Usable {
			mode = ShareGroup
		}
	}
	w.mu.Lock()
	w.mode = mode
	w.mu.Unlock()
	limits := consumerLimits
	if mode == ShareGroup {
		limits = shareLimits
	}
	c.Logger.Info("worker starts", zap.String("group", c.Group), zap.Stringer("mode", mode), zap.String("because", reason),
		zap.String("limits", limits))
	return mode, nil
}

// probe asks the brokers whether a share group can be used.
func (w *Worker) probe(ctx context.Context, c source.Config) (found share.Support, err error) {
	err = w.ask(ctx, c, "share groups", func(client *kgo.Client) (err error) {
		found, err = share.Probe(ctx, client, c.Group)
		return err
	})
	return found, err
}

// archived returns topics.ErrArchive while the agent's topics are restored or moved. A principal that may not describe the journal cannot
// tell: it starts, as it did before there were journals.
func (w *Worker) archived(ctx context.Context, c source.Config) error {
	journal, exists := w.config.Archive, false
	if journal == "" {
		return nil
	}
	if err := w.ask(ctx, c, "the topic "+journal, func(client *kgo.Client) error {
		listed, err := kadm.NewClient(client).ListTopics(ctx, journal)
		if errors.Is(err, kerr.TopicAuthorizationFailed) {
			c.Logger.Warn("worker may not describe the journal of archive and starts also while topics are restored or moved; allow Describe on it",
				zap.String("group", c.Group), zap.String("topic", journal))
			return nil
		}
		exists = err == nil && (listed[journal].Err == nil || errors.Is(listed[journal].Err, kerr.LeaderNotAvailable))
		return err
	}); err != nil || !exists {
		return err
	}
	return fmt.Errorf("%w: the topic %s has its journal (group %s)", topics.ErrArchive, journal, c.Group)
}

// ask asks the brokers, with backoff until they answer.
func (w *Worker) ask(ctx context.Context, c source.Config, what string, request func(*kgo.Client) error) error {
	client, err := franz.Dial(c.Brokers, c.Client())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer client.Close()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 5*time.Second
	warning := retry.NewWarning(c.Logger, nil, "worker cannot ask the brokers for "+what+", retrying", "the brokers have answered")
	for {
		err := request(client)
		switch {
		case err == nil:
			warning.Over(zap.String("group", c.Group))
			return nil
		case ctx.Err() != nil:
			return nil
		}
		pause := wait.NextBackOff()
		w.note(err)
		warning.Failed(err, zap.String("group", c.Group))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// sourceOf returns the source of a mode.
func (w *Worker) sourceOf(mode Mode, c source.Config) source.Source {
	if mode == ShareGroup {
		return share.New(share.Config{Config: c, Lock: w.config.Lock})
	}
	return consumer.New(consumer.Config{
		Config: c, Handover: w.config.Handover, ReadAhead: w.config.ReadAhead, Ordered: w.config.Ordered,
		InstanceID: w.config.InstanceID,
	})
}
