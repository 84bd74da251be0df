package delivery_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
)

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
	graph, err := delivery.Graph("quay", delivery.Config{
		DefaultService: delivery.Service{Budget: time.Minute},
		Services:       map[string]delivery.Service{"ledger": {Ordered: true}},
	})
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
func ExampleGraph_peerCallbacks() {
	graph, err := delivery.Graph("harbor", delivery.Config{PeerCallbacks: true})
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
	var p *processors.Processor // runs delivery.Graph
	row, err := p.Get("harbor-s19")
	if err != nil {
		panic(err)
	}
	text, err := delivery.Describe(row)
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
}

func ExampleDescribeCircuit() {
	var p *processors.Processor // runs delivery.RoutesGraph
	row, err := p.Get("http/harbor")
	if err != nil {
		panic(err)
	}
	text, err := delivery.DescribeCircuit(row, time.Now())
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
}

// An operator requeues what is dead of a session. The row is that of a processor or a view.
func ExampleDeliveries() {
	views, err := delivery.Deliveries("session-1", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range views {
		if v.Status == delivery.StatusDead {
			fmt.Println(v.DeliveryID, v.Requeue(context.Background(), printer{}, "quay", "mira"))
		}
	}
	fmt.Println(len(views))
	// Output: 0
}
