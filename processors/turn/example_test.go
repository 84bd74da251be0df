package turn_test

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// A turn with one tool call, played against the transition.
func Example() {
	now := time.UnixMilli(1_790_000_000_000)
	offset := int64(0)
	from := func(topic string) *turn.Record {
		offset++
		return &turn.Record{Session: "harbor-s19", Cause: fmt.Sprint(offset), Topic: topic, At: now, Value: []byte(topic)}
	}

	var state *turn.State
	var asked turn.Enriched
	play := func(e turn.Event) {
		out, err := turn.Apply(state, e, nil, now, turn.DefaultRules())
		if err != nil {
			fmt.Println(err)
			return
		}
		if out.Changed {
			state = out.State
		}
		for _, effect := range out.Effects {
			switch v := effect.(type) {
			case turn.Emit:
				fmt.Println("  writes", v.ID[len("0123456789abcdef0123456789abcdef"):])
				if question, ok := v.Value.(turn.Enriched); ok {
					asked = question
				}
				if answer, ok := v.Value.(turn.Answered); ok {
					fmt.Println("  says", answer.Content)
				}
			case turn.DeadLetter:
				fmt.Println("  dead-letters:", v.Reason)
			}
		}
	}
	text := func(s string) *string { return &s }

	fmt.Println("a message")
	play(turn.MessageArrived{Record: from("message-input"), Message: topics.Message{
		SessionID: text("harbor-s19"), Role: text("user"), Content: topics.Raw(`"Which berth is free?"`),
	}})

	fmt.Println("the model asks for a tool")
	play(turn.ThinkResponded{Record: from("think-request-response"), Response: topics.ThinkResponse{
		Known: 1, LastInputMessage: asked.LatestInput,
		ToolUses: []topics.ToolUseItem{{ToolUseID: text("tu_91a"), Name: text("berth_lookup")}},
	}})

	fmt.Println("a result nobody asked for")
	play(turn.ToolAnswered{Record: from("foreign"), Result: topics.ToolUseResult{ToolUseID: text("tu_000")}})

	fmt.Println("the tool's result")
	play(turn.ToolAnswered{Record: from("tool-use-result"), Result: topics.ToolUseResult{
		ToolUseID: text("tu_91a"), Result: topics.Raw(`{"berth":"N4"}`), Status: text("success"),
	}})

	fmt.Println("the model answers")
	play(turn.ThinkResponded{Record: from("the answer"), Response: topics.ThinkResponse{
		Known: 1, PreviousMessages: asked.History, LastInputMessage: asked.LatestInput, EndTurn: true,
		LastInputResponse: topics.Raw(`[{"role":"assistant","content":"Berth N4 is free."}]`),
	}})
	// Output:
	// a message
	//   writes /1/enriched/0
	// the model asks for a tool
	//   writes /1/tool-use/0
	// a result nobody asked for
	//   dead-letters: turn: no open call has this tool_use_id
	// the tool's result
	//   writes /1/all-complete/0
	//   writes /1/message/0
	//   writes /2/enriched/0
	// the model answers
	//   writes /0/output/0
	//   says Berth N4 is free.
}

// The graph is a plain Goka graph; processors.New runs it.
func ExampleGraph() {
	graph, err := turn.Graph("harbor", turn.WithThinkTimeout(2*time.Minute), turn.WithQueue(turn.Reject, 1))
	fmt.Println(graph.Group(), err)

	_, err = turn.Graph("harbor", turn.WithToolTimeout(0))
	fmt.Println(err)
	// Output:
	// harbor-streams <nil>
	// turn: option out of range: tool timeout is 0s, want 1ms or more
}

func ExampleOptionsFromEnv() {
	env := map[string]string{"ASYNC_TOOL_TIMEOUT_MS": "60000", "THINK_TIMEOUT_MS": "soon"}
	_, err := turn.OptionsFromEnv(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	fmt.Println(err)
	// Output:
	// turn: bad environment variable: THINK_TIMEOUT_MS: want a whole number from 1 to 4611686018427
}

func ExampleDescribe() {
	role, id := "user", "harbor-s19"
	out, err := turn.Apply(nil, turn.MessageArrived{
		Record:  &turn.Record{Session: id, Cause: "chat-1", Value: []byte("{}")},
		Message: topics.Message{SessionID: &id, Role: &role, Content: topics.Raw(`"Which berth is free?"`)},
	}, nil, time.UnixMilli(1_790_000_000_000), turn.DefaultRules())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(turn.Describe(out.State))
	// Output:
	// history: 0 messages, 0 bytes
	// turn c6728d1841a86709caf11515186143b9: step 1 waits for the model until 2026-09-21T14:23:20Z
	// remembered: 1 records, 0 request ids, 0 calls and results, 0 steps
	// next deadline: 2026-09-21T14:23:20Z
}
