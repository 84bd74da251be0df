package think_test

import (
	"context"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// printer replaces a processors.Publisher.
type printer struct{}

func (printer) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		fmt.Println(r.Topic, r.Key, string(r.Headers["turntable.id"]))
	}
	return nil
}

// A model that looks something up before it answers.
func Example() {
	model := think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
		if *s.Input().Role == "tool" {
			return think.Say("Berth N4 is free."), nil
		}
		return think.Reply{Blocks: []think.Block{
			{Text: "Let me look."},
			{Call: &think.Call{ID: "call-1", Name: "berth_lookup", Input: topics.Raw(`{"at":"18:00"}`)}},
		}}, nil
	})
	worker, err := think.New("pilot", printer{}, model, think.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// worker.Run(ctx, brokers) takes steps from the topic; here one is passed directly.
	step := record(`{"session_id":"s","history":[],"latest_input":{"role":"user","content":"Which berth is free?"}}`)
	step.Timestamp = time.Now()
	if err := worker.Handle(context.Background(), step); err != nil {
		fmt.Println(err)
	}
	// Output: pilot-think-request-response s turn/1/enriched/0/think
}
