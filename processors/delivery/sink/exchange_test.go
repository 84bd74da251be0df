package sink_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// exchanger is a transport with responses.
type exchanger func(ctx context.Context, a sink.Attempt) (topics.Raw, error)

func (e exchanger) Exchange(ctx context.Context, a sink.Attempt) (topics.Raw, error) {
	return e(ctx, a)
}

func (e exchanger) Deliver(context.Context, topics.Delivery) error { panic("not called") }

// shortener is an exchanger whose responses may be too large.
type shortener struct {
	exchanger
	short topics.Raw
}

func (s shortener) Shorten(topics.Raw) topics.Raw { return s.short }

func exchanging(t *testing.T, to processors.Publisher, e sink.Transport, c sink.Config) *sink.Sink {
	t.Helper()
	c.Transports, c.Clock, c.Name = map[string]sink.Transport{topics.KindHTTP: e}, clock.NewFake(noon), "sink-1"
	s, err := sink.New("pilot", to, c)
	require.NoError(t, err)
	return s
}

func TestReceiptHasTheResponseOfSuccessAndFailure(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want topics.Outcome
	}{
		"delivered": {nil, topics.OutcomeDelivered},
		"failed":    {&sink.Failure{Reason: "status 503", Status: 503}, topics.OutcomeFailed},
		"refused":   {&sink.Failure{Reason: "status 404", Status: 404, Final: true}, topics.OutcomeRefused},
		"other":     {context.DeadlineExceeded, topics.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			to := &paper{}
			s := exchanging(t, to, exchanger(func(context.Context, sink.Attempt) (topics.Raw, error) {
				return topics.Raw(`{"a":1}`), c.err
			}), sink.Config{})
			require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
			require.Equal(t, c.want, to.all()[0].Outcome)
			require.JSONEq(t, `{"a":1}`, string(to.all()[0].Response))
		})
	}
}

func TestInterruptedAttemptHasItsResponse(t *testing.T) {
	to := &paper{}
	ctx, cancel := context.WithCancel(t.Context())
	s := exchanging(t, to, exchanger(func(ctx context.Context, _ sink.Attempt) (topics.Raw, error) {
		cancel()
		return topics.Raw(`{"reached":true}`), ctx.Err()
	}), sink.Config{})
	require.NoError(t, s.Handle(ctx, inbound(t, attempt("harbor"))))
	require.Equal(t, delivery.ReasonInterrupted, *to.all()[0].Reason)
	require.JSONEq(t, `{"reached":true}`, string(to.all()[0].Response))
}

func TestTransportIsToldThatARecordIsRepeated(t *testing.T) {
	var repeated []bool
	s := exchanging(t, &paper{}, exchanger(func(_ context.Context, a sink.Attempt) (topics.Raw, error) {
		require.Equal(t, "d-1", a.DeliveryID)
		repeated = append(repeated, a.Repeated)
		return nil, nil
	}), sink.Config{})
	record := worker.Record{Inbound: inbound(t, attempt("harbor"))}
	require.NoError(t, s.HandleRecord(t.Context(), record))
	record.Repeated = true
	require.NoError(t, s.HandleRecord(t.Context(), record))
	require.NoError(t, s.Handle(t.Context(), record.Inbound))
	require.Equal(t, []bool{false, true, false}, repeated)
}

// A deferred receipt says that no attempt was made, which is not known of a record that was handled before.
func TestRepeatedRecordWithoutASlotIsNotDeferred(t *testing.T) {
	to, begun, release := &paper{}, make(chan struct{}), make(chan struct{})
	s := exchanging(t, to, exchanger(func(context.Context, sink.Attempt) (topics.Raw, error) {
		close(begun)
		<-release
		return nil, nil
	}), sink.Config{RouteLimit: 1})
	ended := make(chan error)
	go func() { ended <- s.Handle(context.Background(), inbound(t, attempt("harbor"))) }()
	<-begun
	record := worker.Record{Inbound: inbound(t, attempt("harbor"))}
	require.NoError(t, s.HandleRecord(t.Context(), record))
	record.Repeated = true
	require.NoError(t, s.HandleRecord(t.Context(), record))
	require.Equal(t, topics.OutcomeDeferred, to.all()[0].Outcome)
	require.Equal(t, topics.OutcomeFailed, to.all()[1].Outcome)
	require.Equal(t, delivery.ReasonInterrupted, *to.all()[1].Reason)
	close(release)
	require.NoError(t, <-ended)
}

func TestResponseThatIsNoObjectIsDropped(t *testing.T) {
	for _, response := range []string{"", "7", `"x"`, `{"a":`, `{} x`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000)} {
		to := &paper{}
		s := exchanging(t, to, exchanger(func(context.Context, sink.Attempt) (topics.Raw, error) {
			return topics.Raw(response), nil
		}), sink.Config{})
		require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
		require.Nil(t, to.all()[0].Response, response)
		require.Equal(t, topics.OutcomeDelivered, to.all()[0].Outcome)
	}
	odd := topics.Raw(`{"a":1,"a":"\u0000"}`) // what a receiver in another language may send
	to := &paper{}
	s := exchanging(t, to, exchanger(func(context.Context, sink.Attempt) (topics.Raw, error) { return odd, nil }), sink.Config{})
	require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
	require.Equal(t, odd, to.all()[0].Response)
}

// small is a publisher for records of at most 1000 bytes.
type small struct{ paper }

func (p *small) Publish(ctx context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		if len(r.Value) > 1000 {
			return fmt.Errorf("%w: test", processors.ErrTooLarge)
		}
	}
	return p.paper.Publish(ctx, records...)
}

func TestReceiptThatIsTooLargeHasAShorterResponse(t *testing.T) {
	long := topics.Raw(`{"a":"` + strings.Repeat("x", 2000) + `"}`)
	for name, c := range map[string]struct {
		err         error
		short       topics.Raw
		plain       bool // the transport is no Shortener
		wantOutcome topics.Outcome
		wantReason  string
	}{
		"delivered":       {nil, topics.Raw(`{"b":1}`), false, topics.OutcomeRefused, "response does not fit into a record"},
		"no shortener":    {nil, nil, true, topics.OutcomeRefused, "response does not fit into a record"},
		"no short one":    {nil, nil, false, topics.OutcomeRefused, "response does not fit into a record"},
		"short is broken": {nil, topics.Raw(`{`), false, topics.OutcomeRefused, "response does not fit into a record"},
		"failed":          {&sink.Failure{Reason: "status 500"}, topics.Raw(`{"b":1}`), false, topics.OutcomeFailed, "status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			to, e := &small{}, exchanger(func(context.Context, sink.Attempt) (topics.Raw, error) { return long, c.err })
			var transport sink.Transport = shortener{e, c.short}
			if c.plain {
				transport = e
			}
			require.NoError(t, exchanging(t, to, transport, sink.Config{}).Handle(t.Context(), inbound(t, attempt("harbor"))))
			require.Len(t, to.all(), 1)
			require.Equal(t, c.wantOutcome, to.all()[0].Outcome)
			require.Equal(t, c.wantReason, *to.all()[0].Reason)
			if len(c.short) > 1 {
				require.Equal(t, c.short, to.all()[0].Response)
			} else {
				require.Nil(t, to.all()[0].Response)
			}
		})
	}
	to := &small{}
	s := exchanging(t, to, shortener{exchanger(func(context.Context, sink.Attempt) (topics.Raw, error) { return long, nil }), long}, sink.Config{})
	require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))), "the attempt must not be repeated")
	require.Empty(t, to.all())
}

func TestSinkForPeersUsesTheTopicsOfPeers(t *testing.T) {
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	var written []string
	to := publisher(func(records ...processors.Outbound) {
		for _, r := range records {
			written = append(written, r.Topic)
		}
	})
	e := exchanger(func(context.Context, sink.Attempt) (topics.Raw, error) { return nil, nil })
	for _, c := range []sink.Config{{}, {Peers: true}} {
		require.NoError(t, exchanging(t, to, e, c).Handle(t.Context(), inbound(t, attempt("harbor"))))
	}
	require.Equal(t, []string{catalog.DeliveryReceipts.Name(), catalog.PeerReceipts.Name()}, written)
}

type publisher func(records ...processors.Outbound)

func (p publisher) Publish(_ context.Context, records ...processors.Outbound) error {
	p(records...)
	return nil
}
