package invoke_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/topics"
)

// turn is a stream of given events.
type turn struct{ events []string }

func (t *turn) Next(context.Context) (invoke.Item, error) {
	if len(t.events) == 0 {
		return invoke.Item{}, io.EOF
	}
	e, err := folder.DecodeEvent(topics.Raw(t.events[0]))
	t.events = t.events[1:]
	return invoke.Item{Event: e}, err
}

func (*turn) End() folder.End { return folder.End{StopReason: topics.Raw(`"end_turn"`)} }
func (*turn) Close() error    { return nil }

// greet is an agent that says hello.
func greet(context.Context, invoke.Request) (invoke.Stream, error) {
	return &turn{events: []string{
		`{"type":"message_start","id":"m"}`, `{"type":"message_delta","id":"m","delta":"Hel"}`,
		`{"type":"message_delta","id":"m","delta":"lo"}`, `{"type":"message_end","id":"m"}`,
	}}, nil
}

// post sends a request and returns the response's lines that contain a text.
func post(door http.Handler, having string, headers ...string) string {
	r := httptest.NewRequest(http.MethodPost, "/invoke", strings.NewReader(`{"session_id":"s-1"}`))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, having) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.Join(lines, "\n")
}

// One agent answers with the same events in three formats.
func Example() {
	door, err := invoke.New(invoke.AgentFunc(greet), invoke.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, outputs, _ := strings.Cut(post(door, ""), `"data":`)
	fmt.Println(outputs)
	fmt.Println(post(door, "delta", "Accept", "application/x-ndjson"))
	fmt.Println(post(door, "delta", "Accept", "text/event-stream", invoke.HeaderFormat, "vercel"))
	// Output:
	// {"outputs":{"messages":[{"role":"assistant","content":"Hello"}],"stop_reason":"end_turn"}}}
	// {"type": "message_delta", "data": {"type": "message_delta", "id": "m", "delta": "Hel"}}
	// {"type": "message_delta", "data": {"type": "message_delta", "id": "m", "delta": "lo"}}
	// data: {"type": "text-delta", "id": "m", "delta": "Hel"}
	// data: {"type": "text-delta", "id": "m", "delta": "lo"}
}

// An agent that cannot stream does not run for a client that accepts streams only.
func ExampleConfig_capability() {
	door, err := invoke.New(invoke.AgentFunc(greet), invoke.Config{Capability: invoke.Capability{Shape: invoke.BatchOnly}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := post(door, "", "Accept", "text/event-stream")
	_, supported, _ := strings.Cut(answer[:strings.Index(answer, `,"trace_id"`)], `"requested":`)
	fmt.Println(supported)
	// Output: "text/event-stream","supported":["application/json"]
}

// The client resumes after the last event that it has received.
func ExampleNewBuffered() {
	agent, err := invoke.NewBuffered(invoke.AgentFunc(greet), invoke.BufferConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close()
	door, err := invoke.New(agent, invoke.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	first := post(door, "id: ", "Accept", "text/event-stream")
	last := strings.TrimPrefix(strings.Split(first, "\n")[1], "id: ") // then the connection dropped
	fmt.Println(post(door, "delta", "Accept", "text/event-stream", invoke.HeaderLastEvent, last))
	// Output: data: {"type": "message_delta", "data": {"type": "message_delta", "id": "m", "delta": "lo"}}
}

func ExampleParseAccept() {
	a := invoke.ParseAccept("application/json;q=0.5, text/event-stream, */*;q=0.1")
	fmt.Println(a.Wanted, a.Any)
	// Output: [text/event-stream application/json] true
}

func ExampleParseEventID() {
	id, err := invoke.ParseEventID("turn-7.1.42")
	fmt.Println(id.Turn, id.Attempt, id.Seq, err)
	// Output: turn-7 1 42 <nil>
}

func ExampleSanitize() {
	fmt.Println(invoke.Sanitize("no credit left\n  at billing.go:7"))
	// Output: no credit left
}
