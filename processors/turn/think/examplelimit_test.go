package think_test

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Two agents whose workers share what a provider allows for a model, and in which each user has at most two calls at a time.
func ExampleModelLimit() {
	brokers := []string{"localhost:9092"}
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		fmt.Println("no brokers")
		return
	}
	defer publisher.Close()
	model := think.Func(func(context.Context, think.Step) (think.Reply, error) { return think.Say("Hello."), nil })

	shared := worker.NewLimiter()
	for _, agent := range []string{"pilot", "harbor"} {
		_, err := think.New(agent, publisher, model,
			think.Config{Config: worker.Config{Limiter: shared}, ModelLimit: think.ModelLimit{
				Model:             func(think.Step) string { return "model-1" },
				Concurrency:       32,
				RequestsPerMinute: 1000,
				TokensPerMinute:   400_000,
			}, Limits: []think.Limit{{Name: "user", Concurrency: 2, Key: func(s think.Step) string {
				if s.UserID == nil {
					return ""
				}
				return *s.UserID
			}}}})
		if err != nil {
			fmt.Println(err)
		}
	}
}
