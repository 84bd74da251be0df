package anthropic_test

import (
	"context"
	"fmt"
	"os"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/anthropic"
	"github.com/turntable-streams/turntable/topics"
)

// A model worker that also streams its replies to {agent}-agent-events.
func Example() {
	run := func(ctx context.Context, brokers []string) error {
		model, err := anthropic.New(think.Settings{
			Key: os.Getenv("ANTHROPIC_API_KEY"), Model: "claude-haiku-4-5", System: "You find berths for boats.",
			Tools: []think.Tool{{
				Name: "berth_lookup", Description: "Finds a free berth.",
				InputSchema: topics.Raw(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`),
			}},
		})
		if err != nil {
			return err
		}
		defer model.Close()
		to, err := processors.NewPublisher(brokers)
		if err != nil {
			return err
		}
		defer to.Close()
		streamed, err := think.Stream("pilot", to, model)
		if err != nil {
			return err
		}
		worker, err := think.New("pilot", to, streamed, think.Config{})
		if err != nil {
			return err
		}
		return worker.Run(ctx, brokers)
	}
	_ = run // call it with the addresses of the brokers
}

// If the model cannot be reached, the turn ends in an error output with this text.
func ExampleModel_Think() {
	model, err := anthropic.New(think.Settings{
		Key: "a key", Model: "claude-haiku-4-5", BaseURL: "http://127.0.0.1:1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	role := "user"
	_, err = model.Think(context.Background(), think.Step{
		Messages: []topics.Message{{Role: &role, Content: topics.Raw(`"Which berth is free?"`)}},
	})
	fmt.Println(err)
	// Output: think: the model's API cannot be reached
}
