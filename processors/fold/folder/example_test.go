package folder_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

func turn() []folder.Event {
	var events []folder.Event
	for _, raw := range []string{
		`{"type":"message_start","data":{"id":"msg-0"}}`,
		`{"type":"message_delta","data":{"id":"msg-0","delta":"Let me "}}`,
		`{"type":"message_delta","data":{"id":"msg-0","delta":"look."}}`,
		`{"type":"message_end","data":{"id":"msg-0"}}`,
		`{"type":"tool_call","id":"t1","name":"search","input":{"q":"France"}}`,
		`{"type":"tool_result","id":"t1","output":"Paris"}`,
	} {
		e, err := folder.DecodeEvent(topics.Raw(raw))
		if err != nil {
			panic(err)
		}
		events = append(events, e)
	}
	return events
}

func ExampleFold() {
	batch, err := folder.Fold(append(turn(), folder.Done(topics.Raw(`"end_turn"`))))
	if err != nil {
		panic(err)
	}
	for _, m := range batch.Messages {
		fmt.Println(m)
	}
	fmt.Println(batch.StopReason, batch.State)
	// Output:
	// {"role":"assistant","content":"Let me look."}
	// {"role":"tool","content":"","tool_call_id":"t1","tool_name":"search","input":{"q":"France"}}
	// {"role":"tool","content":"Paris","tool_call_id":"t1","is_error":null}
	// "end_turn" complete
}

func ExampleFoldJSON() {
	batch, err := folder.FoldJSON(topics.Raw(`[{"type":"message","text":"Paris"}]`), topics.Raw(`"end_turn"`))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", batch.AppendJSON(nil))
	// Output:
	// {"messages":[{"role":"assistant","content":"Paris"}],"stop_reason":"end_turn","pending_interaction":null}
}

func ExampleFolder() {
	f := folder.NewFolder()
	for _, e := range turn()[:3] {
		if err := f.Add(e); err != nil {
			panic(err)
		}
	}
	batch, err := f.Batch(folder.End{State: folder.Expired})
	if err != nil {
		panic(err)
	}
	fmt.Println(batch.State, batch.Messages[0])
	// Output:
	// expired {"role":"assistant","content":"Let me look."}
}

func ExampleFolder_Batch() {
	f := folder.NewFolder()
	_ = f.AddJSON(topics.Raw(`[
		{"type":"interaction_request","data":{"id":"r1","payload":{"toolCallId":"t1","toolName":"bash"}}},
		{"type":"interaction_request","data":{"id":"r2","payload":{"toolCallId":"t2","toolName":"write"}}},
		{"type":"done","data":{}}
	]`))
	batch, err := f.Batch(folder.End{StopReason: topics.Raw(`"paused"`)})
	if err != nil {
		panic(err)
	}
	fmt.Println(batch.PendingInteraction)
	fmt.Println(len(batch.Pending), "pending")
	// Output:
	// {"id":"r2","payload":{"toolCallId":"t2","toolName":"write"},"tool":"write"}
	// 2 pending
}

func ExampleResume() {
	events := turn()
	first := folder.NewFolder()
	_ = first.Add(events[0])
	_ = first.Add(events[1])

	second, err := folder.Resume(first.Snapshot())
	if err != nil {
		panic(err)
	}
	_ = second.Add(events[2])
	text, err := second.AssistantText()
	fmt.Println(text, err)
	// Output:
	// Let me look. <nil>
}

func ExampleLog() {
	var stored []folder.Log
	var tail folder.Log
	for _, e := range turn() {
		if tail = tail.Append(e); len(tail) > 32 { // full: put it aside
			stored, tail = append(stored, tail), nil
		}
	}
	f := folder.NewFolder()
	for _, l := range append(stored, tail) {
		if err := f.AddLog(l); err != nil {
			panic(err)
		}
	}
	batch, err := f.Batch(folder.End{})
	fmt.Println(len(batch.Messages), err)
	// Output:
	// 3 <nil>
}

func ExampleCompact() {
	events := turn()[:4]
	size := 0
	for _, e := range events {
		size += len(e.Wrapped())
	}
	fmt.Println(size, "bytes of events,", len(folder.Compact(events...)), "bytes of log")
	// Output:
	// 216 bytes of events, 40 bytes of log
}

func ExampleStrict() {
	_, err := folder.FoldJSON(topics.Raw(`[{"type":"message","data":"text"}]`), nil, folder.Strict())
	fmt.Println(err)
	// Output:
	// fold: malformed event: data is not an object
}

func ExampleTrim() {
	batch, err := folder.Fold(turn())
	if err != nil {
		panic(err)
	}
	fmt.Println(len(folder.Trim(batch.Messages)), len(folder.Trim(batch.Messages[:1])))
	// Output:
	// 3 1
}

func ExampleAssistantText() {
	fmt.Println(folder.AssistantText(turn()))
	// Output:
	// Let me look. <nil>
}

func ExampleDecodeEvent() {
	for _, raw := range []string{`{"type":"done","data":{"stopReason":null}}`, `{"type":"done","stopReason":null}`} {
		e, err := folder.DecodeEvent(topics.Raw(raw))
		if err != nil {
			panic(err)
		}
		fmt.Println(e.Type, e.Flat(), e.Wrapped())
	}
	// Output:
	// done false {"type":"done","data":{"stopReason":null}}
	// done true {"type":"done","data":{"type":"done","stopReason":null}}
}

func ExampleBatch_AppendRecordFields() {
	batch, err := folder.FoldJSON(topics.Raw(`[{"type":"usage","input":12,"output":3},{"type":"done"}]`), nil)
	if err != nil {
		panic(err)
	}
	record := string(batch.AppendRecordFields([]byte(`{"turn_id":"t",`))) + "}"
	fmt.Println(strings.ReplaceAll(record, `,"`, ",\n\""))
	// Output:
	// {"turn_id":"t",
	// "messages":[],
	// "stop_reason":null,
	// "pending_interaction":null,
	// "state":"complete",
	// "pending_interactions":[],
	// "tool_results":[],
	// "error":null,
	// "usage":{"input":12,
	// "output":3},
	// "malformed_events":0}
}

func ExampleSurrogateJoiner() {
	var m folder.SurrogateJoiner
	var sent []folder.Event
	for _, half := range []string{`"Hi \ud83d"`, `"\ude42"`} {
		e, err := folder.NewEvent("message_delta", topics.Raw(`{"id":"msg-0","delta":`+half+`}`))
		if err != nil {
			panic(err)
		}
		sent = m.Append(sent, e)
	}
	for _, e := range m.Flush(sent) {
		fmt.Println(e.Wrapped())
	}
	// Output:
	// {"type":"message_delta","data":{"id":"msg-0","delta":"Hi "}}
	// {"type":"message_delta","data":{"id":"msg-0","delta":"\ud83d\ude42"}}
}

// The terminal record takes precedence over the events.
func ExampleEndOf() {
	reason := "end_turn"
	f := folder.NewFolder()
	for _, raw := range []string{`{"type":"message","data":{"text":"Berth N4."}}`, `{"type":"done","data":{}}`} {
		event, err := folder.DecodeEvent([]byte(raw))
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := f.Add(event); err != nil {
			fmt.Println(err)
			return
		}
	}
	batch, err := f.Batch(folder.EndOf(topics.AgentResult{OK: true, StopReason: &reason}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(batch.State, string(batch.AppendJSON(nil)))
	// Output:
	// complete {"messages":[{"role":"assistant","content":"Berth N4."}],"stop_reason":"end_turn","pending_interaction":null}
}

// A runner that continues after a pause looks up which of its requests were answered.
func ExampleFolder_Interactions() {
	f := folder.NewFolder()
	for _, raw := range []string{
		`{"type":"interaction_request","id":"r1","kind":"user_approval","payload":{"toolCall":{"name":"pay","input":{"eur":1}}}}`,
		`{"type":"interaction_request","id":"r2","kind":"user_input","payload":{"question":"Which berth?"}}`,
		`{"type":"done","stopReason":"paused"}`,
		`{"type":"interaction_response","id":"r1","kind":"user_approval","payload":{"approved":true}}`,
	} {
		e, err := folder.DecodeEvent(topics.Raw(raw))
		if err != nil {
			log.Fatal(err)
		}
		if err := f.Add(e); err != nil {
			log.Fatal(err)
		}
	}
	for _, a := range f.Interactions() {
		fmt.Println(a.ID, a.Kind, a.Tool, a.Answered, folder.GateCall("turn-1", 1, a.Index))
	}
	// Output:
	// r1 user_approval pay true turn-1/1/interaction/0
	// r2 user_input  false turn-1/1/interaction/1
}
