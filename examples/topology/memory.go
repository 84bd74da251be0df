package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// With -memory, the orchestrator remembers its user across sessions. When a session ends, by inactivity or because the user
// leaves, its conversation goes to the updater of memories. The model of a later session is sent the memory.

// The questions of the two sessions.
const (
	toRemember  = "Please remember that my boat is the Alba."
	toAskLater  = "What do you remember about me?"
	nextSession = "-later"
)

// memoryLimit bounds the wait for the memory of a session that has ended.
const memoryLimit = 30 * time.Second

// rememberAcrossSessions tells the orchestrator a fact, ends the session, and asks for the fact in a new session.
func (u *user) rememberAcrossSessions(ctx context.Context, brokers []string) error {
	if err := u.ask(ctx, toRemember); err != nil {
		return err
	}
	var before, memory processors.Inbound
	u.journal.look(func(s *seen) { before = s.memories[mira] })
	end := topics.Control{Action: topics.ActionEnd}
	if err := publish(ctx, u.publisher, u.topics.SessionControl, u.session, end); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	u.screen.note(bold, "left", "session %s ends, and its user is remembered", u.session)
	limited, cancel := context.WithTimeout(ctx, memoryLimit)
	defer cancel()
	if err := u.journal.wait(limited, func(s *seen) bool {
		memory = s.memories[mira]
		return memory.Value != nil && (before.Value == nil || memory.Offset > before.Offset)
	}); err != nil {
		return fmt.Errorf("the memory was not updated: %w", err)
	}
	if err := handled(limited, brokers, string(u.topics.MemoriesGroup()), memory); err != nil {
		return err
	}
	u.journal.settle(ctx)
	u.session += nextSession
	u.screen.note(bold, "session", "%s, of the same user", u.session)
	return u.ask(ctx, toAskLater)
}

// handled waits until a group has handled a record: what the group sends from now on knows of it.
func handled(ctx context.Context, brokers []string, group string, r processors.Inbound) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return fmt.Errorf("offsets of group %s: %w", group, err)
	}
	defer client.Close()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		committed, err := kadm.NewClient(client).FetchOffsets(ctx, group)
		if err != nil {
			return fmt.Errorf("offsets of group %s: %w", group, err)
		}
		if at, ok := committed.Lookup(r.Topic, r.Partition); ok && at.At > r.Offset {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("group %s has not handled %s/%d offset %d: %w", group, r.Topic, r.Partition, r.Offset, ctx.Err())
		}
	}
}
