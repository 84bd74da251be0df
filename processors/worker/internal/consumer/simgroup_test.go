package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// simGroup is what Sarama does for a member.
type simGroup struct {
	sarama.ConsumerGroup
	*simProcess
	errors chan error
}

func (g *simGroup) Errors() <-chan error { return g.errors }

func (g *simGroup) Close() error {
	close(g.errors)
	return g.request(func() error { g.broker.leave(g.id); return nil })
}

func (g *simGroup) Consume(ctx context.Context, _ []string, handler sarama.ConsumerGroupHandler) error {
	var answer <-chan simAssignment
	err := g.request(func() error {
		var m *simMember
		m, answer = g.broker.join(g.id)
		g.id = m.id
		return nil
	})
	if err != nil {
		return err
	}
	var a simAssignment
	select {
	case a = <-answer:
	case <-ctx.Done():
		return ctx.Err()
	}
	g.unfrozen()
	g.locked(func() {
		if g.idle {
			g.owns = time.Now()
		}
		g.idle = len(a.partitions) == 0
		g.note("   %s is %s", g.name, a.id)
	})
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &simSessionOf{ctx: inner, assignment: a}
	var claims, beats sync.WaitGroup
	beats.Go(func() { g.beat(inner, cancel, a.membership) })
	if err := handler.Setup(s); err != nil {
		return err
	}
	for _, partition := range a.partitions {
		claims.Go(func() {
			defer cancel()
			if inner.Err() != nil { // Sarama begins no claim then
				return
			}
			c := &simClaim{partition: partition, start: a.starts[partition], messages: make(chan *sarama.ConsumerMessage, 3), sim: g.simulation}
			claims.Go(func() { g.read(inner, c) })
			if err := handler.ConsumeClaim(s, c); err != nil && inner.Err() == nil {
				g.fail("%s: claim: %v", g.name, err)
			}
		})
	}
	<-inner.Done()
	claims.Wait()
	err = handler.Cleanup(s)
	beats.Wait()
	return err
}

// beat sends heartbeats until the generation ends.
func (g *simGroup) beat(ctx context.Context, cancel func(), as membership) {
	defer cancel()
	for retries := 3; retries > 0 && pause(ctx, simHeartbeat); {
		err := g.request(func() error { return g.broker.heartbeat(as) })
		switch {
		case err == nil:
			retries = 3
		case errors.Is(err, errWire):
			retries--
		case errors.Is(err, sarama.ErrUnknownMemberId):
			g.locked(func() { g.id = "" })
			return
		default:
			return
		}
	}
}

// read passes the records of a claim to it.
func (g *simGroup) read(ctx context.Context, c *simClaim) {
	defer close(c.messages)
	for offset := max(c.start, 0); ; {
		g.unfrozen()
		g.mu.Lock()
		end, appended := g.broker.ends[c.partition], g.broker.appended
		if g.cut || g.dead {
			end = offset
		}
		g.mu.Unlock()
		if offset >= end {
			select {
			case <-appended:
			case <-time.After(time.Second): // perhaps the wire works again
			case <-ctx.Done():
				return
			}
			continue
		}
		m := &sarama.ConsumerMessage{Topic: simTopic, Partition: c.partition, Offset: offset, Key: fmt.Append(nil, offset%3)}
		select {
		case c.messages <- m:
			offset++
		case <-ctx.Done():
			return
		}
	}
}

type simSessionOf struct {
	sarama.ConsumerGroupSession
	ctx        context.Context
	assignment simAssignment
}

func (s *simSessionOf) Claims() map[string][]int32 {
	return map[string][]int32{simTopic: slices.Clone(s.assignment.partitions)}
}
func (s *simSessionOf) MemberID() string         { return s.assignment.id }
func (s *simSessionOf) GenerationID() int32      { return s.assignment.generation }
func (s *simSessionOf) Context() context.Context { return s.ctx }

type simClaim struct {
	partition int32
	start     int64
	messages  chan *sarama.ConsumerMessage
	sim       *simulation
}

func (c *simClaim) Topic() string                            { return simTopic }
func (c *simClaim) Partition() int32                         { return c.partition }
func (c *simClaim) InitialOffset() int64                     { return c.start }
func (c *simClaim) HighWaterMarkOffset() int64               { return 0 }
func (c *simClaim) Messages() <-chan *sarama.ConsumerMessage { return c.messages }
