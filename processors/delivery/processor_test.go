package delivery_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_000).UTC()

const secret = "s3cret"

// fixture runs both groups without a broker and holds their inputs and outputs.
type fixture struct {
	*processortest.Driver
	topics   topics.Catalog
	outputs  *processortest.Input[topics.Output]
	replies  *processortest.Input[topics.Route]
	receipts *processortest.Input[topics.Receipt]
	controls *processortest.Input[topics.DeliveryControl]
	attempts *processortest.Output[topics.Delivery]
	finals   *processortest.Output[topics.Receipt]
	dead     *processortest.Output[topics.DeadDelivery]
	removed  *processortest.Output[topics.Route]
	letters  *processortest.Output[[]byte]
}

func newFixture(t *testing.T, config delivery.Config) *fixture {
	t.Helper()
	c, err := topics.For("quay")
	require.NoError(t, err)
	deliveries, err := delivery.Graph("quay", config)
	require.NoError(t, err)
	routes, err := delivery.RoutesGraph("quay", config)
	require.NoError(t, err)
	d := processortest.New(t, noon, routes, deliveries)
	return &fixture{
		Driver: d, topics: c, outputs: processortest.In(d, c.MessageOutput), replies: processortest.In(d, c.ReplyTo),
		receipts: processortest.In(d, c.DeliveryReceipts), controls: processortest.In(d, c.DeliveryControl),
		attempts: processortest.Out(d, c.Deliveries), finals: processortest.Out(d, c.DeliveryReceipts),
		dead: processortest.Out(d, c.DeliveryDLQ), removed: processortest.Out(d, c.ReplyTo),
		letters: processortest.OutRaw(d, "quay-delivery-streams-dlq"),
	}
}

// writeRouteAndOutput writes a route and the output that names it, as the turn does with turn.Config.Delivery.
func (b *fixture) writeRouteAndOutput(session string) {
	id := topics.RouteID(session, "route-"+session)
	b.replies.PipeRaw(session, []byte(`{"callbackService":"harbor","bearerToken":"`+secret+`"}`),
		processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("route-" + session)}))
	b.outputs.Pipe(session, topics.Output{
		SessionID: &session, Content: "answer", SourceAgent: "agent-1",
		ReplyTo: topics.Raw(`{"callbackService":"harbor","route_id":"` + id + `"}`),
	}, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("turn-" + session + "/0/output/0")}))
}

func (b *fixture) report(a topics.Delivery, outcome topics.Outcome, reason string) {
	sink := "sink-1"
	b.receipts.Pipe(a.SessionID, topics.Receipt{
		DeliveryID: a.DeliveryID, SessionID: a.SessionID, Attempt: a.Attempt, Route: a.Route, Outcome: outcome,
		Reason: &reason, Sink: &sink, AtMS: b.Now().UnixMilli(),
	})
}

func TestDeliveryIsAttemptedWithItsTokenAndEnds(t *testing.T) {
	b := newFixture(t, delivery.Config{})
	b.writeRouteAndOutput("s1")
	attempt := b.attempts.Next()
	require.Equal(t, secret, *attempt.Value.Token)
	require.Equal(t, attempt.Value.DeliveryID+"/attempt/1", attempt.ID())
	require.Equal(t, "s1", attempt.Key)
	b.report(attempt.Value, topics.OutcomeDelivered, "")
	final := b.finals.Next()
	require.Equal(t, attempt.Value.DeliveryID+"/final/0", final.ID())
	require.True(t, final.Value.Final)
	removed := b.removed.Next()
	require.Nil(t, removed.Raw)
	require.Equal(t, "s1", removed.Key)
	require.NoError(t, b.Replay())
}

func TestTokenIsOnlyInRecordsOfAttempts(t *testing.T) {
	b := newFixture(t, delivery.Config{})
	b.writeRouteAndOutput("s1")
	b.report(b.attempts.Next().Value, topics.OutcomeRefused, "status 404")
	final, dead := b.finals.Next(), b.dead.Next()
	require.NotContains(t, string(final.Raw)+string(dead.Raw), secret)
	b.replies.PipeRaw("s2", []byte(`{"callbackService":"`+strings.Repeat("x", 64<<10)+`","bearerToken":"`+secret+`"}`))
	letter := b.letters.Next()
	require.NotContains(t, string(letter.Raw), secret)
	require.Contains(t, string(letter.Headers[topics.HeaderErrorReason]), "route is too large")
	table := processortest.Table(b.Driver, b.topics.DeliveryGroup(), deliveryrow.Table.Codec())
	state, ok := table.Get("s1")
	require.True(t, ok)
	text, err := delivery.Describe(state)
	require.NoError(t, err)
	require.NotContains(t, text, secret)
}

func TestFailuresOfOneSessionOpenTheCircuitForOthers(t *testing.T) {
	b := newFixture(t, delivery.Config{Breaker: delivery.Breaker{Failures: 2, Open: 10 * time.Second, Longest: time.Minute}})
	for _, session := range []string{"s1", "s2"} {
		b.writeRouteAndOutput(session)
		b.report(b.attempts.Next().Value, topics.OutcomeFailed, "timeout")
	}
	circuits := processortest.Table(b.Driver, b.topics.DeliveryRoutesGroup(), deliveryrow.CircuitTable.Codec())
	circuit, ok := circuits.Get("http/harbor")
	require.True(t, ok, "receipts are re-keyed to the row of their route")
	text, err := delivery.DescribeCircuit(circuit, b.Now())
	require.NoError(t, err)
	require.Contains(t, text, delivery.CircuitOpen)
	b.writeRouteAndOutput("s3")
	require.Zero(t, b.attempts.Len())
	b.Advance(9 * time.Second)
	require.Zero(t, b.attempts.Len())
	b.Advance(11 * time.Second)
	require.Len(t, b.attempts.Drain(), 3)
}

func TestControlRecordRequeuesDeadDelivery(t *testing.T) {
	b := newFixture(t, delivery.Config{})
	b.writeRouteAndOutput("s1")
	b.report(b.attempts.Next().Value, topics.OutcomeRefused, "status 404")
	id := b.dead.Next().Value.Delivery.DeliveryID
	b.finals.Next()
	b.controls.Pipe("s1", topics.DeliveryControl{Action: topics.ActionRequeue, DeliveryID: id})
	again := b.attempts.Next().Value
	require.Equal(t, id, again.DeliveryID)
	require.Equal(t, secret, *again.Token)
	b.report(again, topics.OutcomeDelivered, "")
	require.Equal(t, id+"/final/1", b.finals.Next().ID())
	b.removed.Next()
	b.controls.Pipe("s1", topics.DeliveryControl{Action: topics.ActionRequeue, DeliveryID: id})
	require.Contains(t, string(b.letters.Next().Headers[topics.HeaderErrorReason]), "no dead delivery")
}

// written are the records that a Publisher of a test got.
type written []processors.Outbound

func (w *written) Publish(_ context.Context, records ...processors.Outbound) error {
	*w = append(*w, records...)
	return nil
}

func TestDeathThatAnOperatorHasSeenIsRequeuedOnce(t *testing.T) {
	b := newFixture(t, delivery.Config{})
	b.writeRouteAndOutput("s1")
	b.report(b.attempts.Next().Value, topics.OutcomeRefused, "status 404")
	table := processortest.Table(b.Driver, b.topics.DeliveryGroup(), deliveryrow.Table.Codec())
	seen := func() delivery.View {
		row, ok := table.Get("s1")
		require.True(t, ok)
		views, err := delivery.Deliveries("s1", row)
		require.NoError(t, err)
		require.Len(t, views, 1)
		return views[0]
	}
	v := seen()
	require.Equal(t, delivery.StatusDead, v.Status)
	require.Equal(t, 1, v.Attempt)
	require.Equal(t, "status 404", v.Failures[0].Reason)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.NotContains(t, string(text), secret)
	requeue := func() {
		var w written
		require.NoError(t, v.Requeue(t.Context(), &w, "quay", "mira"))
		require.Len(t, w, 1)
		require.Equal(t, b.topics.DeliveryControl.Name(), w[0].Topic)
		b.controls.PipeRaw(w[0].Key, w[0].Value, processortest.WithHeaders(w[0].Headers))
	}
	requeue()
	again := b.attempts.Next().Value
	requeue()
	b.report(again, topics.OutcomeRefused, "status 404")
	requeue()
	require.Zero(t, b.attempts.Len(), "the second death was not seen")
	require.Zero(t, b.letters.Len())
	v = seen()
	requeue()
	require.EqualValues(t, 3, b.attempts.Next().Value.Attempt)
	b.dead.Drain()
	b.finals.Drain()
}

func TestPoisonIsDeadLetteredAndProcessingContinues(t *testing.T) {
	b := newFixture(t, delivery.Config{})
	b.outputs.PipeRaw("s1", []byte(`{`))
	b.receipts.PipeRaw("s1", []byte(`{"outcome":"x"}`))
	require.Len(t, b.letters.Drain(), 2)
	require.Len(t, processortest.OutRaw(b.Driver, "quay-delivery-routes-dlq").Drain(), 1)
	b.writeRouteAndOutput("s1")
	b.attempts.Next()
}

// People read dead letters, and these are kept longer than the route.
func TestDeadLettersContainNoToken(t *testing.T) {
	b := newFixture(t, delivery.Config{})
	for _, route := range []string{
		`{"callbackService":"harbor","bearerToken":"` + secret + `"`, // unreadable
		`{"callbackService":"harbor","bearerToken":"` + secret + strings.Repeat("x", 80<<10) + `"}`,
	} {
		b.replies.PipeRaw("s1", []byte(route))
	}
	b.outputs.PipeRaw("s1", []byte(
		`{"session_id":"s1","content":"x","input_tokens":"many","reply_to":{"callbackService":"harbor","bearerToken":"`+secret+`"}}`))
	letters := b.letters.Drain()
	require.Len(t, letters, 3)
	for _, l := range letters {
		require.Empty(t, l.Value)
		require.NotEmpty(t, l.Headers[topics.HeaderErrorTruncated])
		for _, header := range l.Headers {
			require.NotContains(t, string(header), secret)
		}
	}
}

// callback writes the reply of a task of a peer, as package peer does.
func callback(t *testing.T, b *fixture, service string) {
	t.Helper()
	session := "peer:partner-b:1"
	processortest.In(b.Driver, b.topics.PeerCallbacks).Pipe(session, topics.Output{
		SessionID: &session, Content: `{"taskId":"t-9"}`, SourceAgent: "quay",
		ReplyTo: topics.Raw(`{"callbackService":"` + service + `","bearerToken":"` + secret + `","request_id":"peer_1_0a"}`),
	}, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("peer_1_0a/callback")}))
}

func TestRepliesOfPeersAreDeliveredToTheNamedService(t *testing.T) {
	b := newFixture(t, delivery.Config{PeerCallbacks: true})
	callback(t, b, "partner-b-callback")
	attempt := b.attempts.Next().Value
	require.Equal(t, topics.Destination{Kind: "http", Service: "partner-b-callback"}, attempt.Route)
	require.Equal(t, secret, *attempt.Token)
	require.Equal(t, "peer_1_0a", attempt.TurnID)
	require.NotContains(t, string(attempt.Body), secret)
	require.Equal(t, `{"result":"{\"taskId\":\"t-9\"}"}`, string(sink.CallbackBody(attempt)))
	b.report(attempt, topics.OutcomeFailed, "down")
	b.Advance(time.Minute)
	again := b.attempts.Next().Value
	require.Equal(t, attempt.DeliveryID, again.DeliveryID)
	b.report(again, topics.OutcomeDelivered, "")
	require.Equal(t, topics.OutcomeDelivered, b.finals.Next().Value.Outcome)

	callback(t, b, "partner-b-callback")
	require.Zero(t, b.attempts.Len(), "a repeated reply is the same delivery")
	b.writeRouteAndOutput("s1")
	require.Equal(t, "harbor", b.attempts.Next().Value.Route.Service, "outputs are delivered too")
	require.NoError(t, b.Replay())
}

func TestMessagesToChannelsAreDelivered(t *testing.T) {
	b := newFixture(t, delivery.Config{Channels: true})
	origin := topics.Origin{Channel: "slack", Account: "main", Recipient: "C7"}
	session := origin.Session("quay")
	message := topics.Output{
		SessionID: &session, Content: "hello", ReplyTo: topics.OriginRoute(topics.EncodeOrigin(origin), nil),
	}
	messages := processortest.In(b.Driver, b.topics.ChannelMessages)
	messages.Pipe(session, message, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("e1/reply")}))
	attempt := b.attempts.Next().Value
	require.Equal(t, origin.Destination(), attempt.Route)
	b.receipts.Pipe(session, topics.Receipt{
		DeliveryID: attempt.DeliveryID, SessionID: session, Attempt: 1, Route: attempt.Route, Outcome: topics.OutcomeFailed,
		AtMS: b.Now().UnixMilli(), Response: topics.Raw(`{"chunk":1}`),
	})
	b.Advance(time.Minute)
	again := b.attempts.Next().Value
	require.Equal(t, attempt.Channel, again.Channel)
	require.Equal(t, `{"chunk":1}`, string(again.Progress))
	b.report(again, topics.OutcomeDelivered, "")
	require.Equal(t, `{"chunk":1}`, string(b.finals.Next().Value.Response))
	b.outputs.Pipe(session, message, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("t1/0/output/0")}))
	require.Equal(t, "t1", b.attempts.Next().Value.TurnID)
	messages.Pipe(session, topics.Output{SessionID: &session, Content: "nowhere"})
	require.Contains(t, string(b.letters.Next().Headers[topics.HeaderErrorReason]), "no origin")
	require.NoError(t, b.Replay())
}

func TestDamagedRowOfARouteIsReplaced(t *testing.T) {
	b := newFixture(t, delivery.Config{})
	circuits := processortest.Table(b.Driver, b.topics.DeliveryRoutesGroup(), deliveryrow.CircuitTable.Codec())
	b.writeRouteAndOutput("s1")
	processortest.Table(b.Driver, b.topics.DeliveryRoutesGroup(), codec.Bytes()).Put("http/harbor", []byte{0xff})
	b.report(b.attempts.Next().Value, topics.OutcomeFailed, "timeout")
	circuit, ok := circuits.Get("http/harbor")
	require.True(t, ok)
	require.EqualValues(t, 1, circuit.Failures)
}
