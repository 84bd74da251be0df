package consumer

import (
	"context"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// claim is a partition during one generation of the group. Its fields are guarded by the partition's lock.
type claim struct {
	*partition
	ctx      context.Context // ends with the generation
	messages sarama.ConsumerGroupClaim
	space    chan struct{}      // bounds the window: a send acquires, a receive releases
	tasks    map[int64]*task    // the records of the window that are not settled
	busy     map[string][]*task // the keys that are being handled, each with its waiting records
}

// task is a record that was read and is not settled.
type task struct {
	record    processors.Inbound
	head      bool // no earlier record with its key is being handled
	starting  bool // a goroutine is about to call the handler
	passed    bool // the next record with its key had its turn
	delivered int  // how often the handler was called in this claim
}

// releasePause is how long a record waits at least after it was released. It doubles with each release, up to maxPause.
const (
	releasePause = 100 * time.Millisecond
	maxPause     = 10 * time.Second
)

// release returns how long the record waits. A call that began in an earlier claim is no delivery of this one.
func (t *task) release() time.Duration {
	return min(releasePause<<min(max(t.delivered-1, 0), 10), maxPause)
}

// begin begins a claim at the group's commit.
func (p *partition) begin(ctx context.Context, messages sarama.ConsumerGroupClaim, commit progress.Commit) *claim {
	c := &claim{
		partition: p, ctx: ctx, messages: messages, space: make(chan struct{}, p.member.config.ReadAhead),
		tasks: map[int64]*task{}, busy: map[string][]*task{},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose(p.state.Claim(commit, p.member.config.Clock.Now()), "another member has settled it or calls for it")
	p.claim, p.ending, p.untold, p.doubted = c, false, false, false
	return c
}

// end ends the claim. Waiting records are not started; running calls continue.
func (c *claim) end(memberID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claim, c.ending, c.untold, c.runner = nil, true, true, progress.RunnerOf(memberID)
	c.state.End(c.runner, c.member.config.Clock.Now())
	c.state.Retry(progress.Now)
}

// read reads records until the generation ends. When the worker stops, it reads no more and waits for the end.
func (c *claim) read() {
	for {
		select {
		case c.space <- struct{}{}:
		case <-c.member.stopping:
			<-c.ctx.Done()
			return
		case <-c.ctx.Done():
			return
		}
		select {
		case m, ok := <-c.messages.Messages():
			if !ok {
				return // the partition cannot be read any more: the generation ends
			}
			c.admit(recordOf(m))
		case <-c.member.stopping:
			<-c.ctx.Done()
			return
		case <-c.ctx.Done():
			return
		}
	}
}

// admit adds a record to the window and starts it, unless it is settled, runs already, or has to wait.
func (c *claim) admit(r processors.Inbound) {
	t := &task{record: r, head: true}
	c.mu.Lock()
	c.free(c.state.Read(r.Offset))
	if c.state.Decide(r.Offset, c.member.config.Clock.Now()) == progress.Skip {
		c.mu.Unlock()
		return
	}
	c.tasks[r.Offset] = t
	if c.member.config.Ordered && r.Key != nil {
		key := string(r.Key)
		waiting, busy := c.busy[key]
		if busy {
			t.head = false
			waiting = append(waiting, t)
		}
		c.busy[key] = waiting
	}
	head := t.head
	c.mu.Unlock()
	if head {
		c.proceed(t)
	}
}

// free releases space. The caller holds the lock.
func (c *claim) free(n int) {
	for range n {
		<-c.space
	}
}

// settled removes a settled task and returns the next one with its key. The caller holds the lock.
func (c *claim) settled(offset int64) *task {
	t := c.tasks[offset]
	delete(c.tasks, offset)
	if t == nil || !t.head {
		return nil
	}
	return c.next(t)
}

// next returns the task that waits behind t. The caller holds the lock.
func (c *claim) next(t *task) *task {
	if t.passed || !c.member.config.Ordered || t.record.Key == nil {
		return nil
	}
	t.passed = true
	key := string(t.record.Key)
	waiting := c.busy[key]
	if len(waiting) == 0 {
		delete(c.busy, key)
		return nil
	}
	c.busy[key] = waiting[1:]
	waiting[0].head = true
	return waiting[0]
}

// proceed starts a task. If it runs already or is deferred, finish or tick continues with it; both can meet one task, of which
// the second is ignored. It blocks until a slot is free
// and the record is reserved, or until the generation ends.
func (c *claim) proceed(t *task) {
	for t != nil {
		c.mu.Lock()
		action := c.state.Decide(t.record.Offset, c.member.config.Clock.Now())
		next, start := t, action == progress.Start && !t.starting
		switch {
		case start:
			t.starting = true
		case action == progress.Skip: // settled while it waited
			next = c.next(t)
		}
		c.mu.Unlock()
		if start {
			c.start(t)
		}
		if action != progress.Skip {
			return
		}
		t = next
	}
}

// start calls the handler for a task in a goroutine.
func (c *claim) start(t *task) {
	if !c.reserved(t.record.Offset) {
		return
	}
	m := c.member
	for held := false; !held; {
		if !m.confirm(c.ctx) {
			return
		}
		select {
		case m.slots <- struct{}{}:
		case <-m.stopping:
			return
		case <-c.ctx.Done():
			return
		}
		if held = m.lease.Held(); !held { // it has expired in the wait for a slot
			<-m.slots
		}
	}
	c.mu.Lock()
	if c.partition.claim != c || m.stopped() {
		c.mu.Unlock()
		<-m.slots
		return
	}
	offset := t.record.Offset
	t.starting = false
	attempts, repeated := c.state.Start(offset)
	t.delivered++
	d := source.Delivery{
		Record: t.record, Count: t.delivered, Remaining: -1, Attempts: attempts, Repeated: repeated,
		Failed:  func(attempts int) { c.failed(offset, attempts) },
		Confirm: func(ctx context.Context) { c.confirmed(ctx, offset) },
		Wait:    func(waiting bool) { c.wait(offset, waiting) },
	}
	if repeated && t.delivered == 1 {
		d.Count = 2
	}
	ctx, lose := context.WithCancelCause(context.Background())
	k := &call{lose: lose}
	c.calls[offset] = k
	c.mu.Unlock()
	m.work.Go(func() {
		verdict := m.handle(ctx, d)
		owner, next := c.finish(offset, k, verdict)
		lose(nil)
		<-m.slots
		if next != nil {
			owner.proceed(next)
		}
	})
}

// reserved waits until a commit that reserves the offset is stored. It reports false if the claim ends first.
func (c *claim) reserved(offset int64) bool {
	for {
		c.mu.Lock()
		current, ok, stored := c.partition.claim == c, c.state.MayStart(offset), c.stored
		c.mu.Unlock()
		if !current || ok {
			return current
		}
		c.member.wakeCommit()
		select {
		case <-stored:
		case <-c.member.stopping:
			return false
		case <-c.ctx.Done():
			return false
		}
	}
}

// confirmed confirms the membership before a call. Until it knows, the record waits for its call.
func (p *partition) confirmed(ctx context.Context, offset int64) {
	if !p.member.lease.Held() {
		p.wait(offset, true)
		p.member.confirm(ctx)
		p.wait(offset, false)
	}
}

// wait records whether a running record waits for its call.
func (p *partition) wait(offset int64, waiting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Wait(offset, waiting)
}

// failed stores the number of attempts of a running record.
func (p *partition) failed(offset int64, attempts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Fail(offset, attempts)
}
