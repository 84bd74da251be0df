package invoke_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/fold/invoke"
)

// payer is an agent that asks before it pays.
type payer struct{}

func (payer) Invoke(context.Context, invoke.Request) (invoke.Stream, error) {
	return &turn{events: []string{
		`{"type":"tool_call","id":"call-1","name":"pay","input":{"eur":30}}`,
		`{"type":"interaction_request","id":"req-1","kind":"user_approval","payload":{"toolCallId":"call-1"}}`,
		`{"type":"done","stopReason":"paused"}`,
	}, paused: true}, nil
}

func (payer) Continue(_ context.Context, _ invoke.Request, c invoke.Continuation) (invoke.Stream, error) {
	s := &turn{}
	for _, d := range c.Decisions {
		if d.Approved() { // the arguments are those of the event, whatever the client sent
			s.events = append(s.events, `{"type":"tool_result","id":"`+d.Interaction.ToolUseID+`","output":"paid `+
				strings.ReplaceAll(string(d.Interaction.Args), `"`, "")+`"}`)
		} else {
			s.before = append(s.before, d.Events()...) // tells clients and the model that the call was denied
		}
	}
	return s, nil
}

// A turn pauses until a person has decided; then it continues.
func ExampleContinuer() {
	agent, err := invoke.NewBuffered(payer{}, invoke.BufferConfig{PauseTimeout: time.Hour})
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
	send := func(messages string) {
		r := httptest.NewRequest(http.MethodPost, "/invoke",
			strings.NewReader(`{"session_id":"s-1","data":{"inputs":{"messages":[`+messages+`]}}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/x-ndjson")
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		fmt.Println(w.Code)
		for line := range strings.Lines(w.Body.String()) {
			for _, kind := range []string{"tool_result", "stopReason"} {
				if strings.Contains(line, kind) {
					fmt.Print(line)
				}
			}
		}
	}
	answer := func(approved string) string {
		return `{"role":"tool","content":[{"type":"tool_result","output":{"approved":` + approved + `,"interactionToken":"req-1"}}]}`
	}
	send(`{"role":"user","content":"Pay."}`)
	send(answer("true"))
	send(answer("false")) // too late
	// Output:
	// 200
	// {"type": "done", "data": {"type": "done", "stopReason": "paused"}}
	// 200
	// {"type": "tool_result", "data": {"type": "tool_result", "id": "call-1", "output": "paid {eur:30}"}}
	// {"type": "done", "data": {"stopReason": "end_turn"}}
	// 409
}
