package channel

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_120)

// fakePublisher stores the records.
type fakePublisher struct {
	mu      sync.Mutex
	records []processors.Outbound
	// fail returns the error of a record, which is then not written.
	fail func(processors.Outbound) error
}

func (p *fakePublisher) Publish(ctx context.Context, records ...processors.Outbound) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range records {
		if p.fail != nil {
			if err := p.fail(r); err != nil {
				return err
			}
		}
		p.records = append(p.records, r)
	}
	return ctx.Err()
}

// take returns the records since the last call.
func (p *fakePublisher) take() []processors.Outbound {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.records
	p.records = nil
	return list
}

type counted struct {
	what   Action
	reason Reason
}

// rig is a bridge to the agents front and ops, with an account slack/main that tests change.
type rig struct {
	t        testing.TB
	to       *fakePublisher
	settings *Settings
	clock    *clock.Fake
	logs     *observer.ObservedLogs
	*Bridge

	mu     sync.Mutex
	counts []counted
}

func catalog(t testing.TB, agent string) topics.Catalog {
	t.Helper()
	c, err := topics.For(agent, topics.WithChannels(), topics.WithGates())
	require.NoError(t, err)
	return c
}

func newRig(t testing.TB, change func(*Account), c BridgeConfig) *rig {
	t.Helper()
	a := Account{Channel: "slack", Name: "main", Approvers: []string{"U9"}}
	if change != nil {
		change(&a)
	}
	core, logs := observer.New(zap.DebugLevel)
	r := &rig{
		t: t, to: &fakePublisher{}, clock: clock.NewFake(noon), logs: logs,
		settings: &Settings{
			Accounts: []Account{a}, DefaultAgent: "front",
			Agents:   []Agent{{Name: "front", Description: "Answers\n first."}, {Name: "ops"}},
			Bindings: []Binding{{Agent: "ops", ChannelID: "C7"}},
		},
	}
	c.Clock, c.Logger, c.Metrics = r.clock, zap.New(core), Metrics{Received: r.count}
	var err error
	r.Bridge, err = NewBridge(func() *Settings { return r.settings }, r.to,
		[]topics.Catalog{catalog(t, "front"), catalog(t, "ops")}, c)
	require.NoError(t, err)
	return r
}

func (r *rig) count(channel, account string, what Action, reason Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts = append(r.counts, counted{what, reason})
}

func (r *rig) counted() []counted {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.counts
	r.counts = nil
	return list
}

// receive returns the records of an event.
func (r *rig) receive(in adapter.Inbound) []processors.Outbound {
	r.t.Helper()
	require.NoError(r.t, r.Receive(r.t.Context(), in))
	return r.to.take()
}

// direct is a direct message of a person.
func direct(user, text string) adapter.Inbound {
	return adapter.Inbound{
		Event: "event " + user + " " + text, Text: text,
		Origin: topics.Origin{
			Channel: "slack", Account: "main", Recipient: "D-" + user, MessageID: "m1", User: user, UserName: "Name of " + user,
			Adapter: topics.Raw(`{"team":"T1"}`),
		},
	}
}

// group is a message to the account in a room.
func group(room, user, text string) adapter.Inbound {
	in := direct(user, text)
	in.Event = room + " " + in.Event
	in.Origin.Recipient, in.Origin.Group, in.Mentioned = room, true, true
	return in
}

func id(r processors.Outbound) string { return string(r.Headers[topics.HeaderID]) }

func topicsOf(list []processors.Outbound) []string {
	names := []string{}
	for _, r := range list {
		names = append(names, r.Topic)
	}
	return names
}

// decoded returns the only record, which must be of a topic.
func decoded[T any](t testing.TB, topic topics.Topic[T], list []processors.Outbound) T {
	t.Helper()
	require.Equal(t, []string{topic.Name()}, topicsOf(list))
	return valueIn(t, topic.Codec(), list[0].Value)
}

func valueIn[T any](t testing.TB, c codec.Codec[T], raw []byte) T {
	t.Helper()
	d := c.Unmarshal(raw)
	require.NoError(t, d.Err)
	require.False(t, d.Tombstone())
	return d.Value
}

// sent is a message to an agent.
type sent struct {
	processors.Outbound
	topics.Message
	content, prompt string
	origin          topics.Origin
}

func (r *rig) message(agent string, list []processors.Outbound) sent {
	r.t.Helper()
	s := sent{Message: decoded(r.t, catalog(r.t, agent).MessageInput, list), Outbound: list[0]}
	s.content = *topics.TextOf(s.Content)
	raw, ok := topics.Lookup(s.Metadata, topics.MetaOrigin)
	require.True(r.t, ok)
	var err error
	s.origin, err = topics.DecodeOrigin(raw)
	require.NoError(r.t, err)
	if prompt, ok := topics.Lookup(s.Metadata, topics.MetaPrompt); ok {
		s.prompt = *topics.TextOf(prompt)
	}
	return s
}

// reply returns the text that the person is answered, and where.
func (r *rig) reply(agent string, list []processors.Outbound) (string, topics.Origin) {
	r.t.Helper()
	out := decoded(r.t, catalog(r.t, agent).ChannelMessages, list)
	require.Equal(r.t, agent, out.SourceAgent)
	require.Equal(r.t, list[0].Key, *out.SessionID)
	origin, err := topics.DecodeOrigin(topics.OriginOf(out.ReplyTo))
	require.NoError(r.t, err)
	require.Equal(r.t, origin.Session(agent), list[0].Key)
	return out.Content, origin
}
