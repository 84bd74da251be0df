package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// place is the descriptor of an output to a channel.
const place = `{"origin":{"channel":"slack","account":"main","recipient":"C7","thread":"17.5","user":"U1","adapter":{"team":"T1"}}}`

func toChannels(c *Config) { c.Channels = true }

func withResponse(response string) func(*topics.Receipt) {
	return func(r *topics.Receipt) { r.Response = topics.Raw(response) }
}

func TestReceiptOfASuppressedMessageSaysSo(t *testing.T) {
	p := newHarness(t, toChannels)
	a := attempt(t, p.Handle(p.outputOf("t1", place)))
	reason := "nothing to send"
	es := p.Handle(p.receiptOf(a, topics.OutcomeSuppressed, withResponse(`{"status":"suppressed"}`), func(r *topics.Receipt) { r.Reason = &reason }))
	final := machinetest.Only[topics.Receipt](t, es)
	require.Equal(t, topics.OutcomeSuppressed, final.Outcome)
	require.Equal(t, reason, *final.Reason)
	require.Equal(t, `{"status":"suppressed"}`, string(final.Response))
	require.Len(t, es, 1, "no other attempt")
	require.Nil(t, applyReceipt(nil, final, p.Now, Breaker{}))
	require.Nil(t, applyReceipt(nil, topics.Receipt{Outcome: topics.OutcomeSuppressed}, p.Now, Breaker{}), "it says nothing about the platform")
	require.Empty(t, p.Handle(p.outputOf("t1", place)), "a repeated output")
}

func TestOutputWithAnOriginGoesToItsChannel(t *testing.T) {
	p := newHarness(t, toChannels)
	gate := strings.TrimSuffix(place, "}") + `,"gate":{"gate_id":"g1"},"bearerToken":"t0ken"}`
	a := attempt(t, p.Handle(p.outputOf("t1", gate)))
	require.Equal(t, topics.Destination{Kind: topics.KindChannel, Service: "slack/main"}, a.Route)
	require.Equal(t, topics.OriginRoute(topics.OriginOf(topics.Raw(place)), topics.Raw(`{"gate_id":"g1"}`)), a.Channel)
	require.Nil(t, a.Token)
	require.Nil(t, a.Progress)
	require.Contains(t, string(a.Body), "answer of t1")
	require.NotContains(t, string(a.Body), "reply_to")
	require.EqualValues(t, rowChannels, p.Read().Version, "an older build would attempt it without its origin")

	final := machinetest.Only[topics.Receipt](t, p.Handle(p.receiptOf(a, topics.OutcomeDelivered, withResponse(`{"status":"sent","sent":[{"id":"1"}]}`))))
	require.Equal(t, topics.OutcomeDelivered, final.Outcome)
	require.Equal(t, `{"status":"sent","sent":[{"id":"1"}]}`, string(final.Response), "with the platform's IDs")
	require.EqualValues(t, rowVersion, p.Read().Version)
	require.Empty(t, p.Handle(p.outputOf("t1", gate)), "a repeated output")
}

func TestOriginCountsOnlyWithTheOptionAndAlone(t *testing.T) {
	for name, descriptor := range map[string]string{
		"callback service": `{"callbackService":"harbor",` + place[1:],
		"blank service":    `{"callbackService":"",` + place[1:],
		"null service":     place[:len(place)-1] + `,"callbackService":null}`,
		"null origin":      `{"origin":null}`,
	} {
		p := newHarness(t, toChannels)
		for _, a := range machinetest.Values[topics.Delivery](p.Handle(p.outputOf("t1", descriptor))) {
			require.Equal(t, "http/harbor", a.Route.Key(), name)
			require.Nil(t, a.Channel, name)
		}
	}
	p := newHarness(t)
	require.Empty(t, p.Handle(p.outputOf("t1", place)))
	require.Nil(t, p.Row)
}

func TestOutputOfADelegatedTaskIsNotDelivered(t *testing.T) {
	task := topics.EncodeDelegationTask(topics.DelegationTask{Agent: "caller", SessionID: "s9", CallbackID: "c1", Depth: 1})
	for _, channels := range []bool{false, true} {
		p := newHarness(t, func(c *Config) {
			c.Channels, c.Unrouted = channels, topics.Destination{Kind: topics.KindWebSocket}
		})
		require.Empty(t, p.Handle(p.outputOf("t1", string(topics.DelegationRoute(task)))))
		require.Empty(t, p.Handle(p.outputOf("t2", strings.TrimSuffix(place, "}")+`,"delegation":`+string(task)+"}")))
		require.Nil(t, p.Row)
		require.Equal(t, "http/harbor", attempt(t, p.Handle(p.outputOf("t3",
			`{"callbackService":"harbor","delegation":`+string(task)+"}"))).Route.Key(), "a caller wrote that member")
	}
}

func TestBadOriginIsDeadLettered(t *testing.T) {
	for name, descriptor := range map[string]string{
		"no account":        `{"origin":{"channel":"slack","recipient":"C7"}}`,
		"not an object":     `{"origin":"slack"}`,
		"too large":         `{"origin":{"channel":"slack","account":"main","recipient":"C7","x":"` + strings.Repeat("x", topics.MaxOrigin) + `"}}`,
		"the gate is large": strings.TrimSuffix(place, "}") + `,"gate":{"gate_id":"` + strings.Repeat("x", maxGateAsk) + `"}}`,
	} {
		p := newHarness(t, toChannels)
		require.Equal(t, reasonOrigin, machinetest.Reason(t, p.Handle(p.outputOf("t1", descriptor))), name)
		require.Equal(t, reasonOrigin, machinetest.Reason(t, p.Handle(p.messageOf("m1", descriptor))), name)
		require.Nil(t, p.Row)
	}
}

func TestMessageIsIdentifiedByItsWholeID(t *testing.T) {
	p := newHarness(t, toChannels)
	one := attempt(t, p.Handle(p.messageOf("e1/reply/1", place)))
	require.Empty(t, p.Handle(p.messageOf("e1/reply/1", place)), "a repeat")
	require.Equal(t, "e1/reply/1", one.TurnID)
	seen := map[string]bool{one.DeliveryID: true}
	for _, e := range []event{
		p.messageOf("e1/reply/2", place), p.messageOf("e1", place), p.outputOf("e1", place), p.messageOf("", place),
		p.messageOf("", place), p.messageOf("e1/"+strings.Repeat("x", 1000), place),
	} {
		p.Handle(p.receiptOf(one, topics.OutcomeDelivered))
		one = attempt(t, p.Handle(e))
		require.NotContains(t, seen, one.DeliveryID)
		require.LessOrEqual(t, len(one.TurnID), maxTurn)
		seen[one.DeliveryID] = true
	}
}

func TestMessageWithoutAnOriginIsDeadLettered(t *testing.T) {
	p := newHarness(t, toChannels)
	require.Empty(t, p.Handle(messageGiven{p.tombstone(), topics.Output{}}), "a tombstone")
	for _, descriptor := range []string{"", `{}`, harbor, `{"callbackService":"harbor",` + place[1:]} {
		require.Equal(t, reasonNoOrigin, machinetest.Reason(t, p.Handle(p.messageOf("m1", descriptor))))
	}
	require.Nil(t, p.Row)
}

func TestMessagesOfASessionAreSentInOrder(t *testing.T) {
	p := newHarness(t, toChannels)
	one := attempt(t, p.Handle(p.outputOf("t1", place)))
	require.Empty(t, p.Handle(p.messageOf("m2", place)))
	other := attempt(t, p.Handle(p.outputOf("t3", strings.Replace(place, "main", "second", 1))))
	require.Equal(t, "channel/slack/second", other.Route.Key())
	p.Handle(p.receiptOf(one, topics.OutcomeFailed))
	require.Empty(t, p.Handle(p.outputOf("t4", place)), "it is blocked although nothing is in flight")
	es, _ := p.fireNext()
	two := attempt(t, p.Handle(p.receiptOf(attempt(t, es), topics.OutcomeDelivered)))
	require.Equal(t, "m2", two.TurnID)
	es = p.Handle(p.receiptOf(two, topics.OutcomeRefused))
	require.Equal(t, "t4", attempt(t, es).TurnID, "a dead delivery blocks no other")
}

func TestNextAttemptGetsTheProgressOfTheLast(t *testing.T) {
	p := newHarness(t, toChannels)
	a := attempt(t, p.Handle(p.outputOf("t1", place)))
	for i, response := range []string{`{"chunk":1}`, ``, `{"chunk":"` + strings.Repeat("x", MaxProgress) + `"}`, `{"chunk":2}`} {
		p.Handle(p.receiptOf(a, topics.OutcomeFailed, func(r *topics.Receipt) {
			if response != "" {
				r.Response = topics.Raw(response)
			}
		}))
		es, _ := p.fireNext()
		a = attempt(t, es)
		want := `{"chunk":1}` // an attempt that tells nothing, or too much, leaves it
		if i == 3 {
			want = `{"chunk":2}`
		}
		require.Equal(t, want, string(a.Progress))
	}
	es, _ := p.fireNext() // the receipt is lost
	a = attempt(t, es)
	require.Equal(t, `{"chunk":2}`, string(a.Progress))

	es = p.Handle(p.receiptOf(a, topics.OutcomeRefused, withResponse(`{"chunk":3}`)))
	require.Equal(t, `{"chunk":3}`, string(machinetest.Only[topics.Receipt](t, es).Response))
	dead := machinetest.Only[topics.DeadDelivery](t, es).Delivery
	require.Equal(t, place, string(dead.Channel))
	require.Equal(t, `{"chunk":3}`, string(dead.Progress))

	again := attempt(t, p.Handle(p.requeueOf(a.DeliveryID)))
	require.Equal(t, place, string(again.Channel), "a requeue goes to the same place")
	require.Equal(t, `{"chunk":3}`, string(again.Progress), "and continues")
	es = p.Handle(p.receiptOf(again, topics.OutcomeDelivered))
	require.Equal(t, `{"chunk":3}`, string(machinetest.Only[topics.Receipt](t, es).Response), "the last one that there is")
}

// A text of many messages to a platform that takes a few of them per minute.
func TestProgressStartsTheBudgetAndTheAttemptsAgain(t *testing.T) {
	p := newHarness(t, toChannels, func(c *Config) {
		c.Services = map[string]Service{"slack/main": {Attempts: 3, Budget: time.Minute}}
	})
	a := attempt(t, p.Handle(p.outputOf("t1", place)))
	for i := range 20 {
		p.Now = p.Now.Add(45 * time.Second)
		require.Empty(t, machinetest.Values[topics.Receipt](p.Handle(p.receiptOf(a, topics.OutcomeFailed, withResponse(fmt.Sprintf(`{"chunk":%d}`, i))))), i)
		es, _ := p.fireNext()
		a = attempt(t, es)
	}
	p.Handle(p.receiptOf(a, topics.OutcomeFailed, withResponse(`{"chunk":19}`))) // the same again is no progress
	es, _ := p.fireNext()
	es = p.Handle(p.receiptOf(attempt(t, es), topics.OutcomeFailed, withResponse(`{"chunk":19}`)))
	require.Equal(t, topics.OutcomeDead, machinetest.Only[topics.Receipt](t, es).Outcome)
}

func TestServicesHaveNoProgress(t *testing.T) {
	p := newHarness(t, toChannels)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	p.Handle(p.receiptOf(a, topics.OutcomeFailed, withResponse(`{"chunk":1}`)))
	es, _ := p.fireNext()
	a = attempt(t, es)
	require.Nil(t, a.Progress)
	require.Nil(t, a.Channel)
	es = p.Handle(p.receiptOf(a, topics.OutcomeDelivered, withResponse(`{"chunk":1}`)))
	require.Nil(t, machinetest.Only[topics.Receipt](t, es).Response)
}

func TestChannelsAreRetriedLongerThanServices(t *testing.T) {
	p := newHarness(t, toChannels, func(c *Config) {
		c.Services = map[string]Service{"slack/second": {Attempts: 2}}
	})
	p.Handle(p.outputOf("t1", place))
	require.Empty(t, machinetest.Values[topics.Receipt](p.failUntilDead(9*time.Minute)))
	require.Equal(t, reasonBudget, machinetest.Only[topics.DeadDelivery](t, p.failUntilDead(2*time.Minute)).Reason)

	p.Handle(p.outputOf("t2", strings.Replace(place, "main", "second", 1)))
	require.Equal(t, reasonAttempts, machinetest.Only[topics.DeadDelivery](t, p.failUntilDead(time.Minute)).Reason)
}

// failUntilDead lets every attempt of the session fail for a while.
func (p *harness) failUntilDead(d time.Duration) (all effects) {
	p.TB.Helper()
	for end := p.Now.Add(d); p.Now.Before(end) && len(machinetest.Values[topics.DeadDelivery](all)) == 0; {
		for _, open := range p.Read().Open {
			if open.Phase == deliveryrow.Phase_PHASE_IN_FLIGHT {
				all = append(all, p.Handle(p.receiptOf(topics.Delivery{
					DeliveryID: open.Id, SessionID: p.key, Attempt: int64(open.Attempt), Route: routeOf(open),
				}, topics.OutcomeFailed))...)
			}
		}
		if s := p.Read(); len(s.Open) > 0 {
			es, _ := p.fireNext()
			all = append(all, es...)
		}
	}
	return all
}

func TestProgressIsGivenUpBeforeDeliveries(t *testing.T) {
	p := newHarness(t, toChannels)
	for i := range 8 { // each is in flight, because its account is another one
		descriptor := strings.Replace(place, "main", fmt.Sprint("a", i), 1)
		a := attempt(t, p.Handle(p.outputOf(strings.Repeat("x", 3000)+fmt.Sprint(i), descriptor)))
		p.Handle(p.receiptOf(a, topics.OutcomeFailed, withResponse(`{"chunk":"`+strings.Repeat("x", MaxProgress-50)+`"}`)))
	}
	p.config.RowLimit = 64 << 10
	p.RowLimit = p.config.RowLimit
	es, _ := p.fireNext()
	require.Empty(t, machinetest.Values[topics.DeadDelivery](es))
	require.Len(t, p.Read().Open, 8)
	kept := 0
	for _, d := range p.Read().Open {
		if len(d.Progress) > 0 {
			kept++
		}
	}
	require.NotZero(t, kept)
	require.Less(t, kept, 8)
}

func TestLargestProgressFitsIntoTheRecordOfAnAttempt(t *testing.T) {
	p := newHarness(t, toChannels, func(c *Config) { c.RecordLimit, c.RowLimit = 128<<10, 128<<10 })
	dead := machinetest.Only[topics.DeadDelivery](t, p.Handle(p.outputOfSize(p.config.RecordLimit-30_000)))
	require.Equal(t, reasonTooLarge, dead.Reason, "with the largest progress its record would be too large")
}

func (p *harness) outputOfSize(n int) event {
	e := p.outputOf("t1", place).(outputArrived)
	e.Output.Content = strings.Repeat("x", n)
	value, err := p.topics.MessageOutput.Codec().Marshal(e.Output)
	require.NoError(p.TB, err)
	e.Value = value
	return e
}

func TestKindOfChannelsIsNotForServices(t *testing.T) {
	slack := Service{Kind: topics.KindChannel}
	for _, c := range []Config{
		{Services: map[string]Service{"slack/main": slack}}, {DefaultService: slack}, {Unrouted: topics.Destination{Kind: topics.KindChannel}},
	} {
		c.Channels = true
		require.ErrorIs(t, c.complete(), ErrConfig)
	}
	c := Config{Channels: true, Services: map[string]Service{"slack/main": {Initial: 20 * time.Second}}}
	require.NoError(t, c.complete())
	s := c.serviceOf(topics.Destination{Kind: topics.KindChannel, Service: "slack/main"})
	require.Equal(t, Service{
		Kind: topics.KindChannel, Budget: 10 * time.Minute, Initial: 20 * time.Second, Longest: 30 * time.Second,
		Attempts: 100, InFlight: 32, Ordered: true,
	}, s)
}
