package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"
)

// script plays an agent's language model: it reads the conversation and returns a text, with tool calls or as the answer
// that ends the turn.
type script func(c conversation) reply

type reply struct {
	text  string
	calls []call // none: the turn ends
}

var errNoInput = errors.New("the enriched message has no input")

type call struct {
	name  string
	input jsontext.Value
}

// What the scripted models charge, in dollars a token; a token is four bytes.
const (
	inputPrice    = 1e-6
	outputPrice   = 5e-6
	bytesPerToken = 4
)

// think is the model worker of an agent: enriched-message-input in, think-request-response out.
func think(agent string, s script, now func() time.Time) role {
	return role{
		group: topicOf(agent, "think-consumer"),
		topic: topicOf(agent, enrichedInput),
		dlq:   topicOf(agent, thinkDLQ), // the turn then ends in an error output
		answer: func(r *kgo.Record) ([]*kgo.Record, error) {
			var in enrichedMessage
			if err := json.Unmarshal(r.Value, &in); err != nil {
				return nil, fmt.Errorf("no enriched message: %w", err)
			}
			if in.LatestInput == nil {
				return nil, errNoInput
			}
			c, err := read(in)
			if err != nil {
				return nil, err
			}
			out := respond(agent, string(r.Key), in, s(c), now())
			out.ThinkInputTokens = len(r.Value) / bytesPerToken
			out.ThinkCost = inputPrice*float64(out.ThinkInputTokens) + outputPrice*float64(out.ThinkOutputTokens)
			out.TotalSessionCost = out.ThinkCost
			if in.Cost != nil {
				out.TotalSessionCost += *in.Cost
			}
			return []*kgo.Record{{Topic: topicOf(agent, thinkResponses), Key: r.Key, Value: encode(out)}}, nil
		},
	}
}

// respond copies history and input unchanged and adds the response of the model.
func respond(agent, session string, in enrichedMessage, said reply, now time.Time) thinkResponse {
	out := thinkResponse{
		SessionID:           session,
		UserID:              in.UserID,
		PreviousSessionCost: in.Cost,
		PreviousMessages:    in.History,
		LastInputMessage:    in.LatestInput,
		EndTurn:             len(said.calls) == 0,
		Timestamp:           stamp(now),
	}
	content := text(said.text)
	if !out.EndTurn {
		blocks := []block{{Type: "text", Text: said.text}}
		for i, c := range said.calls {
			id := callID(in.LatestInput, i)
			blocks = append(blocks, block{Type: "tool_use", ID: id, Name: c.name, Input: c.input})
			out.ToolUses = append(out.ToolUses, toolUse{
				ToolUseID: id, ToolID: c.name, Name: c.name, Input: c.input,
				SessionID: session, TotalTools: len(said.calls), Timestamp: stamp(now),
			})
		}
		content = encode(blocks)
	}
	out.ThinkOutputTokens = len(content) / bytesPerToken
	out.LastInputResponse = []message{{
		SessionID: &session, UserID: in.UserID, Role: "assistant", Content: content, Timestamp: stamp(now),
		Metadata: encode(metadata{Agent: agent}),
	}}
	return out
}

// callID returns the same id when an input is redelivered, and a different one for every other input.
func callID(input jsontext.Value, i int) string {
	sum := sha256.Sum256(input)
	return fmt.Sprintf("call-%s-%d", hex.EncodeToString(sum[:4]), i+1)
}
