package program

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Claude answers as Anthropic's API does to the program of the README: it asks for the tool, and then says what the tool returned.
func Claude(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	block, delta, reason := `{"type":"tool_use","id":"toolu_1","name":"order_status","input":{}}`,
		`{"type":"input_json_delta","partial_json":"{\"number\":7}"}`, "tool_use"
	if bytes.Contains(body, []byte("on its way")) {
		block, delta, reason = `{"type":"text","text":""}`, `{"type":"text_delta","text":"Order 7 is on its way."}`, "end_turn"
	}
	Stream(w, block, delta, reason)
}

// Stream answers as Anthropic's API does, with one block.
func Stream(w http.ResponseWriter, block, delta, reason string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range [][2]string{
		{"message_start", `"message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":9,"output_tokens":1}}`},
		{"content_block_start", `"index":0,"content_block":` + block},
		{"content_block_delta", `"index":0,"delta":` + delta},
		{"content_block_stop", `"index":0`},
		{"message_delta", `"delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":5}`},
		{"message_stop", `"x":0`},
	} {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", e[0], e[0], e[1])
	}
}
