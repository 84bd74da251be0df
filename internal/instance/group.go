package instance

import (
	"context"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/store"
)

// buildGroup makes the consumer group and stores it in r. A group that was to fail before it was made fails at once.
func (r *run) buildGroup(brokers []string, group, _ string) (sarama.ConsumerGroup, error) {
	inst := r.instance
	conf := inst.sarama()
	conf.Consumer.Group.InstanceId = inst.cfg.InstanceID
	conf.Consumer.Group.Rebalance.Strategy = inst.cfg.Repartitioned.Assignor(conf.Consumer.Group.Rebalance.Strategy)
	var joins *cut.Joins
	if s := conf.Consumer.Group.Rebalance.Strategy; s != nil && inst.cfg.InstanceID != "" {
		joins = cut.NewJoins(s)
		conf.Consumer.Group.Rebalance.Strategy = joins
	}
	inner, err := sarama.NewConsumerGroup(brokers, group, conf)
	if err != nil {
		return nil, err
	}
	options := cut.Options{
		Name: group, InstanceID: inst.cfg.InstanceID,
		Closer: r.closer(), Policy: inst.cfg.Policy, Layers: r.tables.layers,
		Repartitioned: inst.cfg.Repartitioned,
		Send:          func(out cut.Outgoing, done func(error)) { r.producer.Send(out, done) },
		Table:         func() cut.Table { return r.producer },
		Relist:        inst.relist, Epochs: r.epochs, Truncated: r.truncated, Listing: r.listing,
		Client: r.client, Leaving: r.endProducer, Joins: joins, Lease: r.lease, Heartbeat: conf.Consumer.Group.Heartbeat.Interval,
		Events: r.groupEvents(), Log: inst.cfg.Logger,
	}
	if inst.cfg.Guarantee == ExactlyOnce {
		options.Unstable = r.fenceOffsets
	}
	if inst.timed != nil {
		options.Timers = &cut.Timers{
			Topic: store.TimerTopic(group), Tick: inst.cfg.Tick, Clock: inst.cfg.Clock,
			Next: r.tables.next, Due: r.tables.due, Log: r.inputLog(),
		}
	}
	g := cut.NewGroup(inner, options)
	r.mu.Lock()
	doomed := r.doomed
	r.group = g
	r.mu.Unlock()
	if doomed != nil {
		g.Fail(doomed)
	}
	select {
	case <-inst.kill: // Kill was called before there was a group to fail
		g.Fail(cut.ErrKilled)
	default:
	}
	return g, nil
}

// inputLog looks at the inputs by the client of the run.
func (r *run) inputLog() cut.Log {
	return cut.Log{
		High: func(p cut.Partition) (int64, error) { return r.client.GetOffset(p.Topic, p.ID, sarama.OffsetNewest) },
		Data: func(ctx context.Context, p cut.Partition, from, to int64) (end int64, settled bool, err error) {
			return DataEnd(ctx, r.client, p.Topic, p.ID, from, to)
		},
	}
}

// groupEvents logs what the group does, and keeps the health of the instance.
func (r *run) groupEvents() cut.Events {
	inst := r.instance
	log := inst.cfg.Logger
	return cut.Events{
		Recovering: func(generation int32, partitions int) {
			log.Info("recovering", zap.Int32("generation", generation), zap.Int("partitions", partitions))
			inst.health.enter(Recovering)
		},
		Running: func(generation int32) {
			r.tables.running()
			log.Info("running", zap.Int32("generation", generation))
			inst.health.enter(Running)
			inst.warning.Over()
		},
		Ended: func(generation int32, cuts int64) {
			log.Info("generation ended", zap.Int32("generation", generation), zap.Int64("cuts", cuts))
			inst.health.enter(Recovering)
		},
		Made: inst.made,
	}
}

// made notes that the run makes progress, and passes the cut to the hook.
func (inst *Instance) made(m cut.Made) {
	if m.Progress {
		inst.progressed.Store(true)
	}
	if inst.cfg.Hooks.Cut != nil {
		inst.cfg.Hooks.Cut(m)
	}
}

// currentGroup returns the group, or nil before Goka has asked for it.
func (r *run) currentGroup() *cut.Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.group
}

// session returns the context of the running generation. Between generations it never ends.
func (r *run) session() context.Context {
	if g := r.currentGroup(); g != nil {
		if s := g.Current(); s != nil {
			return s.Context()
		}
	}
	return context.Background()
}
