package channel_test

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// console is an adapter that prints chunks.
type console struct{}

func (console) Channel() string { return "console" }

func (console) Traits() adapter.Traits {
	return adapter.Traits{Format: text.Plain, Limit: text.Limit{Max: 30, Unit: text.Runes}}
}

func (console) Send(_ context.Context, c adapter.Chunk) (adapter.Sent, error) {
	fmt.Printf("to %s, %s: %s\n", c.To.Recipient, c.Key, c.Text)
	return adapter.Sent{ID: fmt.Sprint("line-", c.Index)}, nil
}

// A program passes the transport to the sink: one of sink.Config.Transports, with the key channel.Kind. The sink
// calls it for each attempt.
func ExampleNewTransport() {
	current, err := channel.ParseSettings([]byte(`
accounts: [{channel: console, name: main, prefix: bracket}]
agents: [{name: front}]
default_agent: front
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	channels, err := channel.NewTransport("front", channel.Fixed(current), []channel.AccountAdapter{{Name: "main", Adapter: console{}}}, channel.TransportConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	origin := topics.Origin{Channel: "console", Account: "main", Recipient: "room-7"}
	response, err := channels.Exchange(context.Background(), sink.Attempt{Delivery: topics.Delivery{
		DeliveryID: "d-9", Attempt: 1, Route: origin.Destination(), Channel: topics.OriginRoute(topics.EncodeOrigin(origin), nil),
		Body: topics.Raw(`{"content":"Berth **N4** is free until six. Shall I book it?"}`),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, _ := channel.ReadReport(response)
	fmt.Println(report.Status, report.Chunks, report.Sent)
	// Output:
	// to room-7, d-9/0: [front] Berth N4 is free until
	// to room-7, d-9/1: six. Shall I book it?
	// sent 2 [{line-0} {line-1}]
}
