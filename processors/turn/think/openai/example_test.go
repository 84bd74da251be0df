package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/openai"
	"github.com/turntable-streams/turntable/topics"
)

// A server with a compatible API. Its prices are not known, so they are passed.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Berth N4."},"finish_reason":"stop"}]}`, "\n\n",
			`data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}`, "\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	model, err := openai.New(think.Settings{
		Key: "a key", Model: "our-model", BaseURL: server.URL + "/v1",
		Prices: think.Prices{"our-model": {{Input: 1, CacheRead: 0.1, CacheWrite: 1, Output: 4}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	role := "user"
	reply, err := model.Think(context.Background(), think.Step{
		Messages: []topics.Message{{Role: &role, Content: topics.Raw(`"Which berth is free?"`)}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Blocks[0].Text, *reply.Cost)
	// Output: Berth N4. 0.0014
}

// Members of the request that package think does not have.
func ExampleWithMember() {
	model, err := openai.New(think.Settings{Key: "a key", Model: "gpt-5"}, openai.WithMember("reasoning_effort", "low"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
}
