package delivery_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/topics"
)

// An output becomes a delivery. Its first attempt fails and is retried at a deadline.
func ExampleApply() {
	now := time.UnixMilli(1_790_000_000_000).UTC()
	rules := delivery.DefaultRules()
	routes := func(string) delivery.Gate { return delivery.Gate{} } // every circuit is closed
	var state *delivery.State
	apply := func(e delivery.Event) (attempts []topics.Delivery) {
		out := delivery.Apply(state, e, routes, now, rules)
		if out.Changed {
			state = out.State
		}
		for _, effect := range out.Effects {
			switch v := effect.(delivery.Emit).Value.(type) {
			case delivery.AttemptRequested:
				fmt.Println("attempt", v.Attempt, "to", v.Route.Key(), string(v.Body))
				attempts = append(attempts, topics.Delivery(v))
			case delivery.FinalReceipt:
				fmt.Println("ended:", v.Outcome)
			}
		}
		return attempts
	}
	report := func(a topics.Delivery, outcome topics.Outcome) {
		apply(delivery.ReceiptArrived{
			Record:  &delivery.Record{Session: "s", Value: []byte("{}")},
			Receipt: topics.Receipt{DeliveryID: a.DeliveryID, Attempt: a.Attempt, Outcome: outcome},
		})
	}

	output := []byte(`{"content":"Berth N4 is free.","reply_to":{"callbackService":"harbor"}}`)
	first := apply(delivery.OutputArrived{
		Record: &delivery.Record{Session: "s", Cause: "turn-1/0/output/0", Own: true, Value: output},
		Output: topics.Output{Content: "Berth N4 is free.", ReplyTo: topics.Raw(`{"callbackService":"harbor"}`)},
	})
	report(first[0], topics.OutcomeFailed)
	wait := time.UnixMilli(state.DeadlineMs).Sub(now)
	fmt.Println("waits at most one second:", wait <= time.Second)
	now = now.Add(wait)
	second := apply(delivery.DeadlineCame{Session: "s"})
	report(second[0], topics.OutcomeDelivered)
	// Output:
	// attempt 1 to http/harbor {"content":"Berth N4 is free."}
	// waits at most one second: true
	// attempt 2 to http/harbor {"content":"Berth N4 is free."}
	// ended: delivered
}

// The table of RoutesGraph shows the state of a route.
func ExampleDescribeCircuit() {
	now := time.UnixMilli(1_790_000_000_000).UTC()
	reason, sink := "timeout", "sink-1"
	var circuit *delivery.Circuit
	for range 5 {
		circuit = delivery.ApplyReceipt(circuit, topics.Receipt{
			Outcome: topics.OutcomeFailed, Reason: &reason, Sink: &sink, InFlight: 2, AtMS: now.UnixMilli(),
		}, now, delivery.DefaultRules().Breaker)
	}
	fmt.Print(delivery.DescribeCircuit(circuit, now))
	// Output: open, 2 in flight, 5 failures in a row, last: timeout, until 2026-09-21T14:13:25Z
}

type printer struct{}

func (printer) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		fmt.Println(r.Topic, r.Key, string(r.Value))
	}
	return nil
}

func ExampleRequeue() {
	_ = delivery.Requeue(context.Background(), printer{}, "quay", "session-1", "6f0a")
	// Output: quay-delivery-control session-1 {"action":"requeue","delivery_id":"6f0a"}
}

func ExampleGraph() {
	graph, err := delivery.Graph("quay",
		delivery.WithDefaultService(delivery.Service{Budget: time.Minute}),
		delivery.WithService("ledger", delivery.Service{Ordered: true}))
	if err != nil {
		panic(err)
	}
	fmt.Println(graph.Group())
	fmt.Println(strings.Join(graph.InputStreams().Topics(), "\n"))
	// Output:
	// quay-delivery-streams
	// quay-message-output
	// quay-reply-to
	// quay-delivery-receipts
	// quay-delivery-control
}

// The group also delivers the replies of tasks that package peer has run for other instances.
func ExampleWithPeerCallbacks() {
	graph, err := delivery.Graph("harbor", delivery.WithPeerCallbacks())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, in := range graph.InputStreams() {
		fmt.Println(in.Topic())
	}
	// Unordered output:
	// harbor-message-output
	// harbor-reply-to
	// harbor-delivery-receipts
	// harbor-delivery-control
	// harbor-peer-callbacks
}

func ExampleDescribe() {
	fmt.Print(delivery.Describe(&delivery.State{
		Open: []*delivery.Delivery{{
			Id: "6f0a", Kind: "http", Service: "harbor", Body: []byte("{}"), Attempt: 2, Phase: delivery.Phase_PHASE_IN_FLIGHT,
			DueMs: 1_790_000_000_000, Failures: []*delivery.Failure{{Attempt: 1, Reason: "status 503"}},
		}},
		DeadlineMs: 1_790_000_000_000,
	}))
	// Output:
	// delivery 6f0a to http/harbor, 2 bytes: attempt 2, waits for its receipt until 2026-09-21T14:13:20Z
	//   attempt 1: status 503
	// remembered: 0
	// next deadline: 2026-09-21T14:13:20Z
}
