package gemini_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"google.golang.org/genai"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/gemini"
	"github.com/turntable-streams/turntable/topics"
)

// A rate limit says how long to wait.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
			{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`)
	}))
	defer server.Close()
	model, err := gemini.New(think.Settings{
		Key: "a key", Model: "gemini-2.5-flash", BaseURL: server.URL,
	}, func(c *genai.GenerateContentConfig) { c.Temperature = genai.Ptr[float32](0) })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	role := "user"
	_, err = model.Think(context.Background(), think.Step{
		Messages: []topics.Message{{Role: &role, Content: topics.Raw(`"Which berth is free?"`)}},
	})
	var unavailable *think.Unavailable
	if errors.As(err, &unavailable) {
		fmt.Println(unavailable.RateLimit, unavailable.After)
	}
	fmt.Println(err)
	// Output:
	// true 34s
	// gemini: status 429 (RESOURCE_EXHAUSTED); retry after 34s
}
