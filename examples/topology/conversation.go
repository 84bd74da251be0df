package main

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// conversation is the input of a model: the history, followed by the latest message.
type conversation struct {
	messages []message
	memory   string // what the model knows about the user from earlier sessions
}

func read(in enrichedMessage) (conversation, error) {
	c := conversation{memory: in.Memoir}
	raws := in.History
	if in.LatestInput != nil {
		raws = append(raws[:len(raws):len(raws)], in.LatestInput)
	}
	for i, raw := range raws {
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return c, fmt.Errorf("message %d of %d: %w", i+1, len(raws), err)
		}
		c.messages = append(c.messages, m)
	}
	return c, nil
}

func (c conversation) latest() message { return c.messages[len(c.messages)-1] }

// question returns the last text of the user.
func (c conversation) question() string {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].Role == "user" {
			return contentText(c.messages[i].Content)
		}
	}
	return ""
}

// questions counts the messages of the user so far.
func (c conversation) questions() int {
	n := 0
	for _, m := range c.messages {
		if m.Role == "user" {
			n++
		}
	}
	return n
}

// answer returns the last answer of the assistant that ended a turn, or "".
func (c conversation) answer() string {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if m := c.messages[i]; m.Role == "assistant" && m.Content.Kind() == '"' {
			return contentText(m.Content)
		}
	}
	return ""
}

// asked returns the input of a tool call.
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

// lastValue returns the last value of the calculator, or "".
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

// field decodes an object. Fields that it does not have are empty.
func field[T any](raw jsontext.Value) T {
	var v T
	if json.Unmarshal(raw, &v) != nil {
		return *new(T)
	}
	return v
}
