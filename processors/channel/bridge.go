package channel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// Bridge is the receiver of all adapters of a program. It is safe for concurrent use, starts no goroutine, and need not be
// closed.
type Bridge struct {
	live     Live
	to       processors.Publisher
	catalogs map[string]topics.Catalog // by agent
	config   BridgeConfig
	events   *lru.Cache[eventKey, struct{}]

	mu     sync.Mutex
	people *simplelru.LRU[string, window]
}

var _ adapter.Receiver = (*Bridge)(nil)

// NewBridge returns a bridge that passes messages to the agents of catalogs. Each catalog must be one with channels
// (topics.WithChannels); without gates (topics.WithGates), its agent's requests for approval cannot be decided on a channel.
// Agents of the settings without a catalog are passed nothing: bindings to them are skipped. live must not return nil. An error
// wraps ErrConfig.
func NewBridge(live Live, to processors.Publisher, catalogs []topics.Catalog, c BridgeConfig) (*Bridge, error) {
	var check bounds.Check
	c.complete(&check)
	b := &Bridge{live: live, to: to, catalogs: map[string]topics.Catalog{}, config: c}
	if live == nil || to == nil || len(catalogs) == 0 {
		check.Wrong("the arguments", "lack settings, a publisher or a catalog")
	}
	for _, c := range catalogs {
		_, repeated := b.catalogs[c.Agent]
		switch {
		case !c.ChannelMessages.Spec().Created:
			check.Wrong("the catalog", "of agent %q is without topics.WithChannels", c.Agent)
		case repeated:
			check.Wrong("the catalog", "of agent %q is repeated", c.Agent)
		}
		b.catalogs[c.Agent] = c
	}
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	b.people, _ = simplelru.NewLRU[string, window](b.config.People, nil) // fails for a size below 1
	b.events, _ = lru.New[eventKey, struct{}](b.config.RecentEvents)
	return b, nil
}

func (b *Bridge) serves(agent string) bool {
	_, ok := b.catalogs[agent]
	return ok
}

// Receive implements adapter.Receiver. An error says which topic could not be written; it contains nothing of the event but
// its agent.
func (b *Bridge) Receive(ctx context.Context, in adapter.Inbound) error {
	in, err := clean(in)
	if err != nil {
		b.config.Logger.Warn("an event of a channel is dropped: it is not usable", zap.String("channel", in.Origin.Channel),
			zap.String("account", in.Origin.Account), zap.Error(err))
		b.count(in, Invalid, "")
		return nil
	}
	id, key := in.Origin.EventID(in.Event), keyOf(in)
	if b.events.Contains(key) {
		b.count(in, Repeat, "")
		return nil
	}
	s, now := b.live(), b.config.Clock.Now()
	out := b.judge(s, in, now)
	if out.Action != Refuse {
		e := event{id: id, in: in, out: out, settings: s, catalog: b.catalogs[out.Agent], now: now}
		if err := b.write(ctx, e); err != nil {
			return err
		}
		b.events.Add(key, struct{}{}) // a refused event is judged again: Slack sends a message once without its mention and once with it
	}
	b.report(in, out)
	return nil
}

// decide applies the policies, with what is remembered of the person.
func (b *Bridge) judge(s *Settings, in adapter.Inbound, now time.Time) outcome {
	rules := rules{Serves: b.serves, MaxText: b.config.MaxText}
	b.mu.Lock()
	defer b.mu.Unlock()
	who := personOf(in)
	before, _ := b.people.Get(who)
	out, after := decide(s, rules, in, before, now)
	if after.Idle(now) {
		b.people.Remove(who)
	} else {
		b.people.Add(who, after)
	}
	for { // people whose limit has run out
		oldest, w, ok := b.people.GetOldest()
		if !ok || !w.Idle(now) {
			return out
		}
		b.people.Remove(oldest)
	}
}

// keyOf identifies an event among those that are remembered, also by who wrote it and where: the sender chooses the ID of an
// e-mail, which must not make the e-mail of another one a repeat.
func keyOf(in adapter.Inbound) eventKey {
	o := in.Origin
	return eventKey{o.EventID(in.Event), o.Recipient, o.Thread, o.User}
}

type eventKey [4]string

// write publishes the records of an event. A message that does not fit into a record is answered.
func (b *Bridge) write(ctx context.Context, e event) error {
	records, err := b.records(ctx, e)
	if err == nil {
		err = b.to.Publish(ctx, records...)
	}
	if errors.Is(err, processors.ErrTooLarge) && e.out.Action == Ask {
		var reply processors.Outbound
		if reply, err = e.reply(tooLong); err == nil {
			err = b.to.Publish(ctx, reply)
		}
	}
	if err != nil {
		return fmt.Errorf("bridge: an event of %s/%s for agent %s was not written; the platform must send it again: %w",
			e.in.Origin.Channel, e.in.Origin.Account, e.out.Agent, err)
	}
	return nil
}

// report logs and counts what was done with an event.
func (b *Bridge) report(in adapter.Inbound, out outcome) {
	level, text := zap.DebugLevel, "an event of a channel is refused"
	if out.Reason == NoAccount || out.Reason == NoAgent {
		level, text = zap.WarnLevel, "an event of a channel is refused: the settings do not provide for it"
	}
	if out.Reason != "" {
		b.config.Logger.Log(level, text, zap.String("channel", in.Origin.Channel), zap.String("account", in.Origin.Account),
			zap.String("reason", string(out.Reason)))
	}
	b.count(in, out.Action, out.Reason)
}

func (b *Bridge) count(in adapter.Inbound, what Action, reason Reason) {
	if b.config.Metrics.Received != nil {
		b.config.Metrics.Received(in.Origin.Channel, in.Origin.Account, what, reason)
	}
}
