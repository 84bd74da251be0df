package instance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/store"
)

// run is one run of Goka's processor, from the connection to the brokers until the processor is stopped or fails. A restart
// of the instance is a new run, which creates everything in here again.
type run struct {
	instance   *Instance
	client     sarama.Client
	topics     *TopicManager
	tables     *tables
	lease      *cut.Lease
	group      *cut.Group
	producer   *cut.Producer
	processor  *goka.Processor
	partitions atomic.Int32
	inputs     inputs
	listing    *cut.Listing
	epochs     *cut.Epochs
	committed  committed
	life       context.Context // of the processor: Goka's

	mu        sync.Mutex
	cause     error         // of the first failed callback, which Goka converts to text
	doomed    error         // a failure before there was a group: the group is not joined
	sender    sarama.Client // of async
	async     sarama.AsyncProducer
	consumers []sarama.Consumer

	gaveUp atomic.Bool // the open transaction is not committed any more
}

// leaseMargin: a lease is shorter than the session timeout by a fifth, for the time between a send and its arrival.
const leaseMargin = 5

// transactionLimit bounds the wait for an open transaction at the end of a table: the broker's default transaction timeout
// and the interval of its scan for timeouts.
const transactionLimit = 75 * time.Second

// runOnce runs Goka's processor until ctx ends (nil) or something fails.
func (inst *Instance) runOnce(ctx context.Context) (err error) {
	client, err := inst.connect()
	if err != nil {
		return fmt.Errorf("instance: group %s: %w: %w", inst.group, errUnreachable, err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(client.Close())) }()

	// Check this before anything that would fence another process with the same instance id. The last failure may not show
	// that there is one: a transaction's timeout fences a producer too, and the answer to a heartbeat may have been lost.
	if err := cut.Replaced(client, inst.last); err != nil {
		return fmt.Errorf("instance: %w", err)
	}
	if inst.cfg.Guarantee == ExactlyOnce {
		if err := CheckTransactions(client); err != nil {
			return fmt.Errorf("instance: group %s: %w", inst.group, err)
		}
	}
	r := inst.newRun(client)
	if err := r.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.closeConsumers(), r.closeSender()) }()
	r.processor, err = goka.NewProcessor(inst.cfg.Brokers, inst.cfg.Graph, r.builders()...)
	if err != nil {
		return fmt.Errorf("instance: group %s: %w", inst.group, err)
	}
	return r.serve(ctx)
}

// connect returns the client of a run, which sends commits, heartbeats and offset requests.
func (inst *Instance) connect() (sarama.Client, error) {
	conf := inst.cfg.Sarama()
	session := conf.Consumer.Group.Session.Timeout
	// One connection that hangs must not cost the lease: half the session timeout leaves time for a heartbeat on another.
	conf.Net.ReadTimeout = min(conf.Net.ReadTimeout, session/2)
	conf.Net.DialTimeout = min(conf.Net.DialTimeout, session/2)
	conf.Admin.Timeout = min(conf.Admin.Timeout, conf.Net.ReadTimeout)
	kafka.NewSilence(conf.Net.ReadTimeout, 0).Limit(conf)
	if conf.Net.TLS.Enable { // a Silence does not limit its requests
		kafka.LimitGreeting(conf)
	}
	client, err := sarama.NewClient(inst.cfg.Brokers, conf)
	return client, kafka.Explain(conf, err, inst.cfg.Brokers...)
}

func (inst *Instance) newRun(client sarama.Client) *run {
	r := &run{instance: inst, client: client}
	r.topics = &TopicManager{
		Client: client, Replication: inst.cfg.Replication,
		Limit: transactionLimit, Context: r.needed, Ended: r.ended,
	}
	switch inst.cfg.Guarantee {
	case AtLeastOnce: // transactions are fenced by the broker
		session := client.Config().Consumer.Group.Session.Timeout
		r.lease = cut.NewLease(session-session/leaseMargin, cut.Now)
	case ExactlyOnce:
		r.topics.Fence = r.fence
	}
	r.tables = newTables(inst.cfg, inst.timed, r.topics.TopicID, newAges(inst.cfg.Clock, inst.cfg.Logger, r.topics.Tombstones))
	r.topics.Stored = r.tables.stored
	if inst.timed != nil {
		r.topics.Virtual, r.topics.Like = store.TimerTopic(inst.group), inst.firstInput()
	}
	return r
}

// serve runs Goka's processor until ctx ends, Kill is called or something fails.
func (r *run) serve(ctx context.Context) error {
	r.instance.begin(r)
	defer r.instance.end(r)

	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.life = running
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { r.failWhenKilled(ended) })
	watch.Go(func() {
		defer cancel()
		r.stopWhenDone(ctx, ended)
	})
	watch.Go(func() { r.watchRecovery(running, watchEvery) })
	watch.Go(func() { r.checkAges(running, ageEvery) })
	watch.Go(func() { r.watchCuts(running, cutsEvery) })
	watch.Go(func() { r.watchInputs(running, r.client.Config().Metadata.RefreshFrequency) })
	err := r.processor.Run(running)
	close(ended)
	cancel()
	watch.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || ctx.Err() != nil && r.group == nil && !r.instance.wasKilled() {
		return nil // Goka returns an error if it is stopped before it has joined
	}
	if r.cause != nil {
		return fmt.Errorf("instance: group %s: %w", r.instance.group, errors.Join(r.cause, err))
	}
	return fmt.Errorf("instance: group %s: %w", r.instance.group, err)
}

// begin makes r the run that Health, Get and Kill see.
func (inst *Instance) begin(r *run) {
	inst.mu.Lock()
	defer inst.mu.Unlock()
	inst.cur = r
}

func (inst *Instance) end(r *run) {
	inst.mu.Lock()
	inst.cur = nil
	inst.mu.Unlock()
	if g := r.currentGroup(); g != nil {
		// It is zero if the answer to a join may have been lost: the coordinator may have replaced the former member ID by
		// one that this process does not know, and would report that ID as another process.
		inst.last = g.Member()
	}
}

// failWhenKilled fails the group without a cut when Kill is called. It returns when ended is closed.
func (r *run) failWhenKilled(ended <-chan struct{}) {
	select {
	case <-r.instance.kill:
		if g := r.currentGroup(); g != nil {
			g.Fail(cut.ErrKilled)
		}
	case <-ended:
	}
}

// stopWhenDone drains the group when ctx ends or Kill is called, and blocks until it has stopped or ended is closed.
func (r *run) stopWhenDone(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-r.instance.kill:
	case <-ctx.Done():
	case <-ended:
	}
	if g := r.currentGroup(); g != nil {
		g.Stop(ended)
	}
}
