package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// entry is a record of an instance: one of its members is set.
type entry struct {
	session string
	receipt *topics.Receipt       // an attempt to send a task to a peer
	result  *topics.ToolUseResult // what a model is told
	output  *topics.Output        // the answer of a turn
}

// journal has the records of an instance since it was followed. It is safe for concurrent use.
type journal struct {
	catalog topics.Catalog
	mu      sync.Mutex
	entries []entry
	changed chan struct{} // closed by the next entry
}

// follow follows the topics of an instance until ctx ends. It returns when the journal has begun.
func follow(ctx context.Context, c *child, wait *sync.WaitGroup) (*journal, error) {
	all, err := catalog()
	if err != nil {
		return nil, err
	}
	j := &journal{catalog: all, changed: make(chan struct{})}
	follower, err := processors.NewFollower(c.brokers,
		[]string{all.PeerReceipts.Name(), all.ToolUseResult.Name(), all.MessageOutput.Name()}, j.add)
	if err != nil {
		return nil, err
	}
	return j, begin(ctx, follower, wait)
}

// begin runs a follower until ctx ends, and returns when it is ready.
func begin(ctx context.Context, follower *processors.Follower, wait *sync.WaitGroup) error {
	wait.Go(func() { _ = follower.Run(ctx) }) // it retries until ctx ends, and then returns nil
	select {
	case <-follower.Ready():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (j *journal) add(r processors.Inbound) {
	e := entry{session: string(r.Key)}
	switch r.Topic {
	case j.catalog.PeerReceipts.Name():
		e.receipt = valueOf(j.catalog.PeerReceipts, r)
	case j.catalog.ToolUseResult.Name():
		e.result = valueOf(j.catalog.ToolUseResult, r)
	case j.catalog.MessageOutput.Name():
		e.output = valueOf(j.catalog.MessageOutput, r)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	close(j.changed)
	j.changed = make(chan struct{})
}

// valueOf returns the value of a record, or nil if it cannot be decoded.
func valueOf[T any](t topics.Topic[T], r processors.Inbound) *T {
	in := t.Codec().Unmarshal(r.Value)
	if in.Err != nil {
		return nil
	}
	return &in.Value
}

// first returns the first entry of a session that matches, as soon as there is one. what describes it in the error.
func (j *journal) first(ctx context.Context, session, what string, match func(entry) bool) (entry, error) {
	for {
		j.mu.Lock()
		entries, changed := j.entries, j.changed
		j.mu.Unlock()
		for _, e := range entries {
			if e.session == session && match(e) {
				return e, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return entry{}, fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}

// answer returns the text of the answer of a session.
func (j *journal) answer(ctx context.Context, session string) (string, error) {
	e, err := j.first(ctx, session, "the answer of the turn", func(e entry) bool { return e.output != nil })
	switch {
	case err != nil:
		return "", err
	case e.output.Error != nil:
		return "", fmt.Errorf("the turn ended in an error: %s: %s", e.output.Error.Code, e.output.Error.Message)
	}
	return e.output.Content, nil
}

// attempt returns the receipt of an attempt.
func (j *journal) attempt(ctx context.Context, session string, number int64) (topics.Receipt, error) {
	return j.receipt(ctx, session, func(r topics.Receipt) bool { return r.Attempt == number })
}

// delivered returns the receipt of the attempt that brought a reply.
func (j *journal) delivered(ctx context.Context, session string) (topics.Receipt, error) {
	return j.receipt(ctx, session, func(r topics.Receipt) bool { return r.Outcome == topics.OutcomeDelivered })
}

func (j *journal) receipt(ctx context.Context, session string, match func(topics.Receipt) bool) (topics.Receipt, error) {
	e, err := j.first(ctx, session, "an attempt", func(e entry) bool { return e.receipt != nil && match(*e.receipt) })
	if err != nil {
		return topics.Receipt{}, err
	}
	return *e.receipt, nil
}

// told returns what the model of a session was told as the result of its call.
func (j *journal) told(ctx context.Context, session string) (topics.ToolUseResult, error) {
	e, err := j.first(ctx, session, "the tool result", func(e entry) bool { return e.result != nil })
	if err != nil {
		return topics.ToolUseResult{}, err
	}
	return *e.result, nil
}
