package instance

import (
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
)

// The retries of a transactional producer. Brokers return CONCURRENT_TRANSACTIONS while they write the markers of the
// previous transaction. The first retry is after a millisecond, not after Sarama's 100 ms.
const (
	transactionRetries  = 400
	transactionMaxPause = 50 * time.Millisecond
)

func transactionPause(retries, _ int) time.Duration {
	return min(time.Millisecond<<min(retries, 6), transactionMaxPause)
}

// retryTransaction returns the wait before Sarama asks the transaction coordinator again. Sarama cannot be told to stop: once the
// run has failed, or the transaction has timed out, the closed client and the missing waits end all attempts at once.
func (r *run) retryTransaction(retries, most int) time.Duration {
	if g := r.currentGroup(); g != nil && g.Err() != nil {
		r.giveUpTransaction()
	}
	if r.gaveUp.Load() {
		return 0
	}
	return transactionPause(retries, most)
}

// giveUpTransaction leaves the outcome of the open transaction to the next start, which aborts it.
func (r *run) giveUpTransaction() {
	if r.instance.cfg.Guarantee != ExactlyOnce || r.gaveUp.Swap(true) {
		return
	}
	r.mu.Lock()
	sender := r.sender
	r.mu.Unlock()
	if sender != nil {
		_ = sender.Close()
	}
}

// transactionalID returns the transactional id of the instance. Its prefix is the group's: a new owner of a partition
// fences only transactional ids with that prefix.
func (inst *Instance) transactionalID() string { return inst.transactionPrefix() + inst.cfg.InstanceID }

func (inst *Instance) transactionPrefix() string { return inst.group + "/" }

func (inst *Instance) transactionTimeout() time.Duration {
	if d := inst.cfg.TransactionTimeout; d > 0 {
		return d
	}
	return inst.cfg.Sarama().Consumer.Group.Session.Timeout
}

// producerConfig returns Sarama's configuration of the producer. Under exactly once, the producer's initialisation fences
// the producer that the instance had before.
func (inst *Instance) producerConfig() *sarama.Config {
	c := inst.sarama()
	if inst.cfg.Guarantee != ExactlyOnce {
		return c
	}
	c.Producer.Transaction.ID = inst.transactionalID()
	c.Producer.Transaction.Timeout = inst.transactionTimeout()
	c.Producer.Transaction.Retry.Max = transactionRetries
	c.Producer.Transaction.Retry.BackoffFunc = transactionPause
	return c
}

func (r *run) closer() cut.Closer {
	if r.instance.cfg.Guarantee == ExactlyOnce {
		return cut.NewTransactional(r.async, string(goka.GroupTable(goka.Group(r.instance.group))), r.listing)
	}
	return cut.NewPlain(r.client, r.listing)
}

// fence is called while a transaction is open at the end of a table that is being recovered. It fences only writers of the
// group's own table: the writer of a joined table may be alive.
func (r *run) fence(topic string, partition int32) {
	if topic != string(goka.GroupTable(goka.Group(r.instance.group))) || r.session().Err() != nil {
		return
	}
	fenced, err := r.fencer().Table(topic, partition)
	r.fenced(fenced, err, "the table", zap.Int32("partition", partition))
}

// fenceOffsets is called while a transaction holds offsets of the group that this member was assigned.
func (r *run) fenceOffsets() {
	age := r.instance.cfg.Policy.Drain
	if session := r.instance.cfg.Sarama().Consumer.Group.Session.Timeout; session < age {
		age = session // a dead member is removed from the group after that time
	}
	fenced, err := r.fencer().Older(age, time.Now())
	r.fenced(fenced, err, "the offsets")
}

func (r *run) fencer() Fencer {
	inst := r.instance
	return Fencer{
		Client: r.client, Brokers: inst.cfg.Brokers, Config: inst.producerConfig,
		Prefix: inst.transactionPrefix(), Own: inst.transactionalID(),
	}
}

func (r *run) fenced(ids []string, err error, on string, fields ...zap.Field) {
	log := r.instance.cfg.Logger.With(fields...).With(zap.String("on", on))
	if err != nil {
		log.Warn("an open transaction could not be aborted: the instance waits for it", zap.Error(err))
	}
	if len(ids) > 0 {
		log.Info("ended the transaction of a former owner", zap.Strings("transactional_ids", ids))
	}
}
