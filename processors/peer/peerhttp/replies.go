package peerhttp

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
	"github.com/turntable-streams/turntable/topics"
)

// Replies reads what the group of an agent (package peer) says about tasks, and passes it to the requests of a Handler that
// wait for it. Every process with a door runs one, so a reply reaches the request that waits for it in any process. It keeps no
// reply. Its methods are safe for concurrent use.
type Replies struct {
	agent   string
	topic   topics.Topic[topics.PeerReply]
	logger  *zap.Logger
	follows *tableindex.Index

	mu       sync.Mutex
	waiting  map[task]map[*waiter]struct{}
	watchers []func(topics.PeerReply)
}

// NewReplies returns the replies of an agent's group. It opens no connection. The error wraps ErrConfig.
func NewReplies(agent string, c Config) (*Replies, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var check bounds.Check
	c.complete(&check)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	r := &Replies{agent: agent, topic: catalog.PeerReplies, logger: c.Logger, waiting: map[task]map[*waiter]struct{}{}}
	r.follows = tableindex.New(ErrConfig, nil, &tableindex.Source{Topics: []string{r.topic.Name()}, Handle: r.onRecord, New: true})
	return r, nil
}

// Run reads the topic from its end until ctx ends and then returns nil; requests that wait are then answered with 503, and
// their tasks continue. It reads committed records only, and belongs to no consumer group. It waits for brokers that are
// unavailable and for a topic that does not exist. opts are the connection options of processors.New. Run may be called once.
// A second call, and invalid options, return errors that wrap ErrConfig.
func (r *Replies) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	return r.follows.Run(ctx, brokers, r.logger, opts)
}

// Ready returns a channel that is closed once Run sees every reply that is written. Before, the door answers with 503.
func (r *Replies) Ready() <-chan struct{} { return r.follows.Ready }

// task identifies a task as the group does: by its session, which is the key of its records, and in it by its ID and a label. The
// other label is empty.
type task struct{ session, peerID, inboundID, taskID string }

// waiter is a request that waits for a task.
type waiter struct {
	id   string // in its commands
	task task
	hash string // of its request; empty if any request with the task ID is meant
	// replies has room for one reply that the task runs, and for the one that ends the wait. Further ones of the former are
	// dropped.
	replies chan topics.PeerReply
}

// wait makes a waiter for a task. The caller publishes its commands afterwards, so that it misses no reply, and calls stop.
func (r *Replies) wait(t task, hash string) (w *waiter, stop func()) {
	w = &waiter{id: rand.Text(), task: t, hash: hash, replies: make(chan topics.PeerReply, 2)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[t] == nil {
		r.waiting[t] = map[*waiter]struct{}{}
	}
	r.waiting[t][w] = struct{}{}
	return w, func() { r.stop(w) }
}

func (r *Replies) stop(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(w)
}

// remove forgets a waiter. The caller holds the lock.
func (r *Replies) remove(w *waiter) {
	delete(r.waiting[w.task], w)
	if len(r.waiting[w.task]) == 0 {
		delete(r.waiting, w.task)
	}
}

// watch passes every reply to a function, which must not block. It is called under the lock of r.
func (r *Replies) watch(seen func(topics.PeerReply)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers = append(r.watchers, seen)
}

// onRecord is called for each record of the topic.
func (r *Replies) onRecord(record processors.Inbound) {
	if record.Value == nil {
		return
	}
	d := r.topic.Codec().Unmarshal(record.Value)
	if d.Err != nil {
		r.logger.Error("peer door cannot read a reply; requests that wait for it time out", zap.String("topic", record.Topic),
			zap.Int32("partition", record.Partition), zap.Int64("offset", record.Offset), zap.Error(d.Err))
		return
	}
	reply := d.Value
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, seen := range r.watchers {
		seen(reply)
	}
	for w := range r.waiting[task{string(record.Key), reply.PeerID, reply.InboundID, reply.TaskID}] {
		if !w.wants(reply) {
			continue
		}
		if reply.State != topics.PeerRunning {
			r.remove(w) // so that it gets one of them at most
		} else if len(w.replies) > 0 {
			continue
		}
		w.replies <- reply
	}
}

// wants reports whether a reply is for a waiter: an answer to its command, or the end of the task that it waits for.
func (w *waiter) wants(reply topics.PeerReply) bool {
	if reply.Waiter != "" {
		return reply.Waiter == w.id
	}
	return reply.State == topics.PeerDone && (w.hash == "" || w.hash == reply.Hash)
}
