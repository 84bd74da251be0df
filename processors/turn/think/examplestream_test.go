package think_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
)

// lastTopic replaces a processors.Publisher. Words that wait for the brokers become one event, so the number of events varies.
type lastTopic struct{ topic string }

func (c *lastTopic) Publish(_ context.Context, records ...processors.Outbound) error {
	c.topic = records[0].Topic
	return nil
}

// A model that yields its reply word by word.
func ExampleStream() {
	words := think.StreamFunc(func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			for _, word := range []string{"Berth ", "N4 ", "is ", "free."} {
				if !yield(think.Delta{Text: word}, nil) {
					return
				}
			}
		}
	})
	to := new(lastTopic)
	model, err := think.Stream("pilot", to, words)
	if err != nil {
		fmt.Println(err)
		return
	}
	// think.New("pilot", publisher, model) runs the model; here one step is passed directly.
	reply, err := model.Think(context.Background(), think.Step{SessionID: "s", Key: "turn/1/enriched/0", TurnID: "turn", Number: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(to.topic)
	fmt.Println(reply.Blocks[0].Text)
	// Output:
	// pilot-agent-events
	// Berth N4 is free.
}
