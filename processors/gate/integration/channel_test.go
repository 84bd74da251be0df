package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// told are the committed messages to channels, by their turntable.id.
type told struct {
	mu   sync.Mutex
	byID map[string]topics.Output
}

func (m *told) get(id string) (topics.Output, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.byID[id]
	return o, ok
}

// watchChannels reads the committed messages to channels until the test ends.
func (f *fixture) watchChannels() *told {
	f.t.Helper()
	m := &told{byID: map[string]topics.Output{}}
	reader, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(f.topics.ChannelMessages.Name()), kgo.FetchMaxWait(20*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				d := f.topics.ChannelMessages.Codec().Unmarshal(r.Value)
				if d.Err != nil {
					f.t.Errorf("offset %d: %v", r.Offset, d.Err)
				}
				for _, h := range r.Headers {
					if h.Key == topics.HeaderID {
						m.mu.Lock()
						m.byID[string(h.Value)] = d.Value
						m.mu.Unlock()
					}
				}
			})
		}
	}()
	f.t.Cleanup(func() {
		cancel()
		<-done
		reader.Close()
	})
	return m
}

// A person is asked where the request came from. Others, and the person in other places, approve nothing; the person does, and
// is told so. The processor is killed between the question and the decisions.
func TestPersonIsAskedAndDecidesOnAChannel(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		f := newFixture(t, guarantee, 2)
		onChannels := builder(func(agent string, _ ...gate.Option) (*goka.GroupGraph, error) {
			return gate.Graph(agent, gate.WithChannels())
		})
		f.run(gate.GrantsGraph, "grants")
		g := f.run(onChannels, "gates")
		f.watch()
		messages := f.watchChannels()

		origin := topics.Origin{Channel: "slack", Account: "main", Recipient: "C7", Thread: "17.5", User: "u1", Group: true}
		session, id := origin.Session(f.agent), "1a2b3c4d5e6f7080"
		publish(f, f.topics.GateRequests, session, topics.GateRequest{
			GateID: id, SessionID: session, Kind: topics.GateTool, Tool: "pay", Args: topics.Raw(`{"cents":5}`), Effect: "ask",
			Channel: topics.EncodeOrigin(origin),
		})
		var ask topics.Output
		require.Eventually(t, func() (ok bool) { ask, ok = messages.get("gate-ask-" + id); return ok }, waitLimit, 5*time.Millisecond)
		require.Equal(t, topics.EncodeOrigin(origin), topics.OriginOf(ask.ReplyTo))
		require.Contains(t, ask.Content, "/approve 1a2b3c4d")
		g.Kill()
		g.stop()
		f.run(onChannels, "gates")

		decide := func(decisionID, code string, by topics.Origin, pressed bool) {
			require.NoError(t, gate.Decide(t.Context(), f.to, f.agent, topics.GateDecision{
				GateID: code, SessionID: session, DecisionID: decisionID, Verdict: topics.VerdictApprove, By: by.User,
				Channel: topics.EncodeOrigin(by), Pressed: pressed,
			}))
		}
		person, thread, channel := origin, origin, origin
		person.User, thread.Thread, channel.Channel = "u2", "9.1", "teams"
		hostile := 0
		for _, by := range []topics.Origin{person, thread, channel} {
			for code, pressed := range map[string]bool{"": false, "1a2b3c4d": false, id: true} {
				decide(fmt.Sprint("hostile-", hostile), code, by, pressed)
				hostile++
			}
		}
		decide("foreign", "ffff3c4d5e6f7080", origin, true) // a gate of another session
		for i := range hostile {
			require.Eventually(t, func() bool { _, ok := messages.get(fmt.Sprint("gate-answer-hostile-", i)); return ok },
				waitLimit, 5*time.Millisecond)
		}
		require.Eventually(t, func() bool { _, ok := messages.get("gate-answer-foreign"); return ok }, waitLimit, 5*time.Millisecond)
		require.Zero(t, f.ended())

		decide("mine", "1A2B3C4D", origin, false)
		var end topics.Output
		require.Eventually(t, func() (ok bool) { end, ok = messages.get("gate-end-" + id); return ok }, waitLimit, 5*time.Millisecond)
		require.Equal(t, "Approved by `u1`: `pay` (1a2b3c4d).", end.Content)
		require.Equal(t, topics.EncodeOrigin(origin), topics.OriginOf(end.ReplyTo))
		require.Eventually(t, func() bool { return f.ended() == 1 }, waitLimit, 5*time.Millisecond)
		for _, o := range f.of(id) {
			require.Equal(t, topics.GateApproved, o.Status)
			require.Equal(t, "mine", o.DecisionID)
		}
	})
}
