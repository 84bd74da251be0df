package capabilities

import (
	"fmt"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// told are the messages to channels, by their turntable.id.
type told struct {
	*gateRig
	byID map[string]topics.Output
}

func (m *told) get(id string) (topics.Output, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.byID[id]
	return o, ok
}

// watchChannels reads the messages to channels until the test ends.
func (f *gateRig) watchChannels() *told {
	f.tb.Helper()
	m := &told{f, map[string]topics.Output{}}
	f.read(func(r *kgo.Record) {
		m.byID[header(r, topics.HeaderID)] = decode(f.world, f.topics.ChannelMessages, r)
	}, f.topics.ChannelMessages.Name())
	return m
}

// A person is asked where the request came from. Others, and the person in other places, approve nothing; the person does, and
// is told so. The processor is killed between the question and the decisions.
func TestPersonIsAskedAndDecidesOnAChannel(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		f := newGateRig(t, guarantee, 2)
		onChannels := builder(func(agent string, _ gate.Config) (*goka.GroupGraph, error) {
			return gate.Graph(agent, gate.Config{Channels: true})
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
		g.crash()
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
