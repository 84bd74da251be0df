package main

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// conversation is what a model gets to read: the history, and the latest message at its end.
type conversation struct{ messages []message }

func read(in enrichedMessage) (conversation, error) {
	var c conversation
	for i, raw := range append(in.History[:len(in.History):len(in.History)], in.LatestInput) {
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return c, fmt.Errorf("message %d of %d: %w", i+1, len(in.History)+1, err)
		}
		c.messages = append(c.messages, m)
	}
	return c, nil
}

func (c conversation) latest() message { return c.messages[len(c.messages)-1] }

// question is what the user said last.
func (c conversation) question() string {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].Role == "user" {
			return contentText(c.messages[i].Content)
		}
	}
	return ""
}

// questions counts what the user said so far.
func (c conversation) questions() int {
	n := 0
	for _, m := range c.messages {
		if m.Role == "user" {
			n++
		}
	}
	return n
}

// answer is what the assistant said last to end a turn, or "".
func (c conversation) answer() string {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if m := c.messages[i]; m.Role == "assistant" && m.Content.Kind() == '"' {
			return contentText(m.Content)
		}
	}
	return ""
}

// asked is the input that the assistant gave a tool call.
func (c conversation) asked(id string) jsontext.Value {
	for i := len(c.messages) - 1; i >= 0; i-- {
		for _, b := range blocks(c.messages[i]) {
			if b.Type == "tool_use" && b.ID == id {
				return b.Input
			}
		}
	}
	return nil
}

// lastValue is the calculator's last value, or "".
func (c conversation) lastValue() string {
	for i := len(c.messages) - 1; i >= 0; i-- {
		results := outcomes(c.messages[i])
		for j := len(results) - 1; j >= 0; j-- {
			if r := results[j]; r.Name == calculator && r.Status == statusSuccess {
				return field[computed](r.Result).Value.String()
			}
		}
	}
	return ""
}

func blocks(m message) []block {
	var b []block
	if m.Role != "assistant" || json.Unmarshal(m.Content, &b) != nil {
		return nil
	}
	return b
}

func outcomes(m message) []outcome {
	var o []outcome
	if m.Role != "tool" || json.Unmarshal(m.Content, &o) != nil {
		return nil
	}
	return o
}

// field reads an object whose fields a script wants; where it is another object, they are empty.
func field[T any](raw jsontext.Value) T {
	var v T
	if json.Unmarshal(raw, &v) != nil {
		return *new(T)
	}
	return v
}
