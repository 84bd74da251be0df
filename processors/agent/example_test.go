package agent_test

import (
	"context"
	"fmt"
	"iter"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// findThenAnswer plays a model that calls the tool and then answers. A real one is that of package think/anthropic, think/openai or
// think/gemini.
func findThenAnswer(_ context.Context, s think.Step) iter.Seq2[think.Delta, error] {
	return func(yield func(think.Delta, error) bool) {
		if *s.Input().Role == "user" {
			yield(think.Delta{Call: &think.Call{ID: s.Key, Name: "find_order", Input: topics.Raw(`{"number":7}`)}}, nil)
			return
		}
		yield(think.Delta{Text: "It is on its way."}, nil)
	}
}

// An agent with a tool, on a broker in its own process.
func Example() {
	type order struct {
		Number int `json:"number" jsonschema:"the number of the order"`
	}
	find := tools.New("find_order", "Finds an order.", func(_ context.Context, o order) (string, error) {
		return fmt.Sprintf("order %d is on its way", o.Number), nil
	})
	a, err := agent.New("support", agent.Config{
		Model: think.StreamFunc(findThenAnswer),
		Tools: []tools.Tool{find},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	answer, err := a.Ask(ctx, "session-1", "Where is order 7?")
	fmt.Println(answer, err)
	stop()
	fmt.Println(<-ran)
	// Output:
	// It is on its way. <nil>
	// <nil>
}

// A caller that may repeat a question gives it a key.
func ExampleAgent_AskOnce() {
	a, err := agent.New("support", agent.Config{Model: think.StreamFunc(findThenAnswer), Tools: []tools.Tool{
		tools.New("find_order", "Finds an order.", func(context.Context, struct {
			Number int `json:"number"`
		},
		) (string, error) {
			fmt.Println("the tool runs")
			return "on its way", nil
		}),
	}, Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	for range 2 {
		fmt.Println(a.AskOnce(ctx, "session-1", "question-1", "Where is order 7?"))
	}
	stop()
	fmt.Println(<-ran)
	// Output:
	// the tool runs
	// It is on its way. <nil>
	// It is on its way. <nil>
	// <nil>
}

// The warehouse is a tool of the support.
func ExampleAgent_Tool() {
	warehouse, err := agent.New("warehouse", agent.Config{Logger: zap.NewNop(), Model: think.Func(
		func(_ context.Context, s think.Step) (think.Reply, error) {
			fmt.Println("the task is:", topics.Text(s.Input().Content))
			return think.Say("12 lamps"), nil
		})})
	if err != nil {
		fmt.Println(err)
		return
	}
	support, err := agent.New("support", agent.Config{
		Logger: zap.NewNop(), Tools: []tools.Tool{warehouse.Tool("ask_warehouse", "Knows what is in stock.")},
		Model: think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
			if *s.Input().Role == "tool" {
				return think.Say("There are some."), nil
			}
			call := think.Call{Name: "ask_warehouse", Input: topics.Raw(`{"task":"Count the lamps."}`)}
			return think.Reply{Blocks: []think.Block{{Call: &call}}}, nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return warehouse.Run(ctx) })
	group.Go(func() error { return support.Run(ctx) })
	fmt.Println(support.Ask(ctx, "session-1", "Are there lamps?"))
	stop()
	fmt.Println(group.Wait())
	// Output:
	// the task is: Count the lamps.
	// There are some. <nil>
	// <nil>
}

// What a process that runs the workers only needs of a Kafka with an authorizer.
func ExampleAgent_Describe() {
	a, err := agent.New("support", agent.Config{Model: think.StreamFunc(findThenAnswer), Parts: agent.Workers})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, acl := range a.Describe().ACLs(processors.ACLConfig{}) {
		fmt.Println(acl.Resource, acl.Name, acl.Operations)
	}
	// Output:
	// group support-think-consumer [AlterConfigs Describe DescribeConfigs Read]
	// topic support-agent-events [Describe Write]
	// topic support-archive [Describe]
	// topic support-enriched-message-input [Describe Read]
	// topic support-message-output [Describe Read]
	// topic support-think-dlq [Describe Read Write]
	// topic support-think-request-response [Describe Read Write]
}
