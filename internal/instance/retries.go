package instance

import (
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/store"
)

// retries returns how often failed handlers are called again.
func (r *run) retries() *cut.Retries {
	inst := r.instance
	return &cut.Retries{
		Limit: inst.cfg.Attempts, First: inst.cfg.Restart.Initial, Longest: inst.cfg.Restart.Max,
		Attempts: inst.attempts, Timer: store.TimerTopic(inst.group), Committed: r.committedAttempts, Failed: inst.handlerFailed,
	}
}

func (inst *Instance) handlerFailed(err error, attempts int, wait time.Duration) {
	inst.health.note(err)
	inst.cfg.Logger.Warn("a handler failed and is called again after the wait; its partition waits",
		zap.Int("attempt", attempts), zap.Duration("wait", wait), zap.Error(err))
	if inst.cfg.Hooks.Retry != nil {
		inst.cfg.Hooks.Retry(err, attempts, wait)
	}
}

// committedAttempts returns how often the handler of a record had failed when its offset was committed, by this member or
// the former owner of the partition. It returns 0 if another offset is committed, or if the brokers do not answer.
func (r *run) committedAttempts(p cut.Partition, offset int64) int {
	resp, err := r.committed.get(r.client, r.instance.group, true)
	if err != nil {
		r.instance.cfg.Logger.Warn("the attempts of earlier owners of a partition are not known and do not count",
			zap.String("topic", p.Topic), zap.Int32("partition", p.ID), zap.Error(err))
		return 0
	}
	b := resp.GetBlock(p.Topic, p.ID)
	if b == nil || b.Err != sarama.ErrNoError || b.Offset != offset {
		return 0
	}
	l, _ := cut.ParseListed(b.Metadata)
	return l.Attempts()
}
