package channel_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// printer stands for the publisher of a program, which is processors.NewPublisher.
type printer struct{}

func (printer) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		fmt.Println(r.Topic)
	}
	return nil
}

// A bridge is the receiver of all adapters of a program.
func ExampleNewBridge() {
	s, err := channel.ParseSettings([]byte(`
accounts:
  - {channel: slack, name: main}
agents:
  - {name: front, description: Answers first.}
default_agent: front
`)) // or channel.OpenSettings, which reads a file again when it changes
	if err != nil {
		log.Fatal(err)
	}
	front, err := topics.For("front", topics.WithChannels(), topics.WithGates())
	if err != nil {
		log.Fatal(err)
	}
	receiver, err := channel.NewBridge(channel.Fixed(s), printer{}, []topics.Catalog{front}, channel.BridgeConfig{})
	if err != nil {
		log.Fatal(err)
	}

	// An adapter does this for each event of its platform.
	in := adapter.Inbound{
		Event: "Ev1", Text: "Which berths are free?",
		Origin: topics.Origin{Channel: "slack", Account: "main", Recipient: "D1", User: "U1", MessageID: "1790000000.000100"},
	}
	if err := receiver.Receive(context.Background(), in); err != nil {
		log.Fatal(err)
	}
	in.Event, in.Text = "Ev2", "/stop"
	if err := receiver.Receive(context.Background(), in); err != nil {
		log.Fatal(err)
	}
	// Output:
	// front-message-input
	// front-session-control
	// front-channel-messages
}
