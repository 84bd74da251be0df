package turnhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// printer replaces a processors.Publisher.
type printer struct{}

func (printer) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		fmt.Println("  to", r.Topic, "of", r.Key)
	}
	return nil
}

// The doors are plain HTTP handlers and can be mounted on any server.
func ExampleNew() {
	// Secrets have at least 32 bytes: openssl rand -base64 32
	const older, newer = "2XH/q0gZ8Fh0u3Eo1n4cWv7yR5tKpLbA=", "Zs9dPfG1kLm3nBvC5xXzQwErTyUiOpA7="
	handler, err := turnhttp.New("pilot", printer{}, turnhttp.Config{
		CallbackSecrets:  []string{newer, older}, // while the older one is rotated
		CallbackServices: func(service string) bool { return service == "harbor" },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := http.NewServeMux()
	server.Handle("/api/", handler)

	post := func(path, body string, headers ...string) {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	question := `{"session_id":"s","content":"Which berth?","request_id":"r-1","reply":{"callbackService":"harbor"}}`
	post(turnhttp.ChatPath, question, "Idempotency-Key", "k-1")
	post(turnhttp.ChatPath, question, "Idempotency-Key", "k-1")
	post(turnhttp.ChatPath, `{"session_id":"s","content":"Hi","reply":{"callbackService":"anywhere"}}`)

	agent := "pilot"
	bearer, err := token.Mint(older, token.Claims{
		SessionID: "s", ToolUseID: "tu_91a", Agent: &agent, Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	post(turnhttp.ToolResponsePath, `{"berth":"N4"}`, "Authorization", "Bearer "+bearer)
	post(turnhttp.ToolResponsePath, `{"berth":"N4"}`, "Authorization", "Bearer forg.ed")
	// Output:
	//   to pilot-reply-to of s
	//   to pilot-message-input of s
	// 200 {"status":"ok","session_id":"s","request_id":"r-1"}
	// 200 {"status":"ok","session_id":"s","request_id":"r-1"}
	// 400 {"error":"unknown callbackService: anywhere"}
	//   to pilot-tool-use-result of s
	// 202 {"status":"accepted","tool_use_id":"tu_91a"}
	// 401 {"error":"Bad token signature"}
}
