package channel_test

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// pager is an adapter of a platform that shows short lines.
type pager struct{ lines chan string }

func (pager) Channel() string { return "pager" }

func (pager) Traits() adapter.Traits {
	return adapter.Traits{Format: text.Plain, Limit: text.Limit{Max: 80, Unit: text.Runes}}
}

func (p pager) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	select {
	case p.lines <- c.To.Recipient + ": " + c.Text:
		return adapter.Sent{ID: c.Key}, nil
	case <-ctx.Done():
		return adapter.Sent{}, &adapter.Failure{Reason: "timeout"}
	}
}

// received passes on what a person typed. After an error, the platform sends it again.
func received(ctx context.Context, to adapter.Receiver, id, person, typed string) error {
	return to.Receive(ctx, adapter.Inbound{
		Event:  id,
		Origin: topics.Origin{Channel: "pager", Account: "main", Recipient: person, User: person, MessageID: id},
		Text:   typed,
	})
}

func Example_adapter() {
	ctx := context.Background()
	p := pager{lines: make(chan string, 1)}
	var _ adapter.Adapter = p

	// A bridge is the receiver of a program; this one answers at once.
	err := received(ctx, adapter.ReceiverFunc(func(ctx context.Context, in adapter.Inbound) error {
		_, err := p.Send(ctx, adapter.Chunk{To: in.Origin, Text: "You wrote: " + in.Text, Key: in.Event + "/0", Count: 1})
		return err
	}), "e1", "ana", "Is the boat in?")
	fmt.Println(err, <-p.lines)
	// Output: <nil> ana: You wrote: Is the boat in?
}
