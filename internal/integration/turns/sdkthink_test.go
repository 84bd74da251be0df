package turns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sdkThink is the think runner of one of FlightDeck's SDKs. It reads and writes only the names of the SDKs.
type sdkThink struct {
	*sdkClient
	agent      string
	typescript bool
}

// said is a message of the prompt that a think runner sends to the model.
type said struct {
	role, text string
	results    []string // the contents of the tool_result blocks
}

func startSDKThink(t *testing.T, brokers []string, agent string, typescript bool) {
	t.Helper()
	startSDK(t, brokers, agent+"-think-consumer", agent+"-enriched-message-input",
		func(c *sdkClient, ctx context.Context, r *kgo.Record) {
			(&sdkThink{c, agent, typescript}).answer(ctx, r)
		})
}

func (w *sdkThink) answer(ctx context.Context, r *kgo.Record) {
	step := readObject(r.Value)
	history, _ := step["history"].([]any)
	input, _ := step["latestInput"].(members)
	blocks, err := harbour(w.prompt(history, input))
	if err != nil {
		w.fail(ctx, r, step, err)
		return
	}
	list, content, end := []any{}, []any{}, true
	for _, b := range blocks {
		content = append(content, b)
		if b["type"] != "tool_use" {
			continue
		}
		end = false
		list = append(list, members{
			"toolUseId": b["id"], "toolId": b["name"], "name": b["name"], "input": b["input"], "sessionId": string(r.Key),
			"totalTools": len(blocks), "timestamp": w.now(),
		})
	}
	reply := w.message(r, step, any(content))
	if end {
		reply = w.message(r, step, blocks[0]["text"])
	}
	w.produce(ctx, w.agent+"-think-request-response", r, w.encode(members{
		"sessionId": string(r.Key), "userId": step["userId"], "cost": 0.002, "prevSessionCost": step["cost"],
		"inputTokens": 100, "outputTokens": 20, "previousMessages": history, "lastInputMessage": input,
		"lastInputResponse": []any{reply}, "toolUses": list, "endTurn": end, "timestamp": w.now(),
	}))
}

// fail writes the report that looks like an answer and the dead letter, as the SDKs do.
func (w *sdkThink) fail(ctx context.Context, r *kgo.Record, step members, reason error) {
	w.produce(ctx, w.agent+"-think-request-response", r, w.encode(members{
		"sessionId": string(r.Key), "userId": step["userId"], "cost": nil, "prevSessionCost": nil, "inputTokens": 0,
		"outputTokens": 0, "messages": []any{w.message(r, step, "Sorry, an error occurred: "+reason.Error())},
		"toolUses": []any{}, "endTurn": true, "timestamp": w.now(),
	}))
	if w.typescript {
		letter := w.encode(members{"originalValue": string(r.Value), "error": reason.Error()})
		w.produce(ctx, w.agent+"-think-dlq", r, letter)
		return
	}
	w.produce(ctx, w.agent+"-think-dlq", r, r.Value, failureHeaders(reason.Error())...)
}

func (w *sdkThink) message(r *kgo.Record, step members, content any) members {
	return members{
		"sessionId": string(r.Key), "userId": step["userId"], "role": "assistant", "content": content, "timestamp": w.now(),
	}
}

func (w *sdkThink) now() string {
	if w.typescript {
		return time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return time.Now().UTC().Format("2006-01-02T15:04:05Z")
}

// prompt builds the messages for the model by the rules of the SDKs: of the results in the history the member content, and the
// latest input as the user's text, whatever it is.
func (w *sdkThink) prompt(history []any, input members) (prompt []said) {
	for _, h := range history {
		m, _ := h.(members)
		role := w.textIn(m, "role")
		switch content := m["content"].(type) {
		case []any:
			p := said{role: role}
			for _, b := range content {
				if block, _ := b.(members); role == "tool" && block["tool_use_id"] != nil {
					p.results = append(p.results, w.textIn(block, "content"))
				}
			}
			prompt = append(prompt, p)
		default:
			prompt = append(prompt, said{role: role, text: fmt.Sprint(content)})
		}
	}
	if len(input) == 0 {
		return prompt
	}
	text, ok := input["content"].(string)
	if !ok {
		text = string(w.encode(input["content"]))
	}
	return append(prompt, said{role: "user", text: text})
}

// harbour is the model. It returns the blocks of its answer.
func harbour(prompt []said) ([]members, error) {
	if len(prompt) == 0 {
		return nil, errors.New("messages: at least one message is required")
	}
	say := func(text string) []members { return []members{{"type": "text", "text": text}} }
	call := func(names ...string) (blocks []members) {
		for _, name := range names {
			blocks = append(blocks, members{
				"type": "tool_use", "id": fmt.Sprintf("toolu_%s_%d", name, len(prompt)), "name": name, "input": members{"at": 18},
			})
		}
		return blocks
	}
	switch last := prompt[len(prompt)-1].text; {
	case last == "Which berth?":
		return call("berth"), nil
	case last == "Book it":
		return call("book", "pay"), nil
	case last == "Fail":
		return nil, errors.New("upstream 529")
	case strings.HasPrefix(last, "["):
		var results []struct{ Content string }
		err := json.Unmarshal([]byte(last), &results)
		text := "Results:"
		for _, r := range results {
			text += " " + r.Content
		}
		return say(text), err
	default:
		text := "Remembered:"
		for _, m := range prompt {
			if m.role == "user" {
				text += " " + m.text
			}
			for _, r := range m.results {
				text += " " + r
			}
		}
		return say(text), nil
	}
}
