package group_test

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/fold/group"
	"github.com/turntable-streams/turntable/topics"
)

// The graph is a plain Goka graph; processors.New runs it.
func ExampleGraph() {
	graph, err := group.Graph("harbor", group.WithThinkResponses())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Group())
	for _, e := range graph.OutputStreams() {
		fmt.Println("out:", e.Topic())
	}
	// Output:
	// harbor-fold-streams
	// out: harbor-fold-streams-dlq
	// out: harbor-batch-messages
	// out: harbor-think-request-response
	// out: harbor-think-dlq
}

// The transition needs no broker: records in, effects out.
func ExampleApply() {
	now := time.UnixMilli(1_790_000_000_000)
	stored := map[uint32][]byte{}
	parts := func(number uint32) ([]byte, error) { return stored[number], nil }
	reason := "end_turn"
	var row *group.Row
	for i, e := range []topics.AgentEvent{
		{Event: topics.Raw(`{"type":"message_start","data":{"id":"msg-0"}}`)},
		{Event: topics.Raw(`{"type":"message_delta","data":{"id":"msg-0","delta":"Berth N4."}}`)},
		{Result: &topics.AgentResult{OK: true, StopReason: &reason}},
	} {
		e.SessionID, e.TurnID, e.Attempt, e.Seq = "harbor-s19", "t-7", 1, int64(i+1)
		out, err := group.Apply(row, group.EventReceived{Session: e.SessionID, Event: e}, parts, now, group.DefaultRules())
		if err != nil {
			fmt.Println(err)
			return
		}
		row = out.Row
		for _, effect := range out.Effects {
			switch v := effect.(type) {
			case group.Emit:
				batch := v.Value.(group.BatchMessage)
				fmt.Println(batch.State, batch.Messages, batch.StopReason)
			case group.PartWritten:
				stored[v.Number] = v.Value
			}
		}
	}
	fmt.Print(group.Describe(row))
	// Output:
	// complete [{"role":"assistant","content":"Berth N4."}] "end_turn"
	// remembered: 1
	// next deadline: 2026-09-22T14:13:20Z
}
