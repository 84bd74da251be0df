// Package model updates the memories of users with a model of package think, such as its adapters for Anthropic, OpenAI and
// Gemini: one question for each ended session.
//
//	ended session --> Prompt --> think.Model --> memory
//
// The model is told the memory so far and the conversation, and writes the whole new memory. Calls of tools and their results
// are in the question briefly. A failure that may pass, a think.Unavailable, is retried by the worker of package updater.
package model

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of New.
var ErrConfig = errors.New("model: invalid configuration")

// errCall is the error of an answer that consists of calls of tools.
var errCall = errors.New("model: the model called a tool instead of writing a memory")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Prompt has the lengths of the question and of the memory, 0 or more.
	Prompt updater.Prompt
	// Question builds the question, instead of Prompt. It is called from several goroutines, and must bound its text by what the
	// model can read.
	Question func(updater.Ended) string
}

// New returns an updater that asks a model. The model should have no tools, and Settings.MaxTokens must be enough for a memory;
// it should not be one of think.Stream, which would publish the memory as the answer of a turn. A blank answer keeps the memory.
// An answer that is longer than Ended.Limit loses its last lines. An answer that a think.Streamer, as the adapters are, cut off
// at its token limit is the error think.ErrTruncated: it would replace the memory by its beginning.
func New(m think.Model, c Config) (updater.Updater, error) {
	if m == nil {
		return nil, fmt.Errorf("%w: no model", ErrConfig)
	}
	if c.Prompt.Length < 0 || c.Prompt.Input < 0 {
		return nil, fmt.Errorf("%w: Prompt has the length %d and the input %d, want 0 or more", ErrConfig, c.Prompt.Length, c.Prompt.Input)
	}
	question := c.Question
	if question == nil {
		question = c.Prompt.Of
	}
	return updater.Func(func(ctx context.Context, e updater.Ended) (updater.Memory, error) {
		reply, err := ask(ctx, m, stepOf(e, question(e)))
		used := updater.Memory{InputTokens: reply.InputTokens, OutputTokens: reply.OutputTokens, Cost: reply.Cost}
		if err != nil {
			return used, err
		}
		text := joined(reply)
		if text == "" && len(reply.Calls()) > 0 {
			return used, errCall
		}
		used.Text = within(text, e.Limit)
		return used, nil
	}), nil
}

// ask asks a model. Only a Streamer says why it stopped.
func ask(ctx context.Context, m think.Model, s think.Step) (think.Reply, error) {
	streamer, ok := m.(think.Streamer)
	if !ok {
		return m.Think(ctx, s)
	}
	reply, stop, err := think.Collect(streamer.Stream(ctx, s))
	if err == nil && cutOff[stop] {
		err = think.ErrTruncated
	}
	return reply, err
}

// cutOff are the reasons with which the adapters' models stop before the end of an answer.
var cutOff = map[string]bool{"max_tokens": true, "model_context_window_exceeded": true}

// stepOf returns a step whose only message is the question.
func stepOf(e updater.Ended, question string) think.Step {
	role := "user"
	content, _ := jsontext.AppendQuote(nil, question) // invalid UTF-8 is replaced
	message := topics.Message{SessionID: &e.SessionID, Role: &role, Content: topics.Raw(content)}
	s := think.Step{
		Agent: e.Agent, SessionID: e.SessionID, Messages: []topics.Message{message}, Key: e.Key, Deadline: e.Deadline,
	}
	if e.UserID != "" {
		s.UserID = &e.UserID
	}
	return s
}

// joined returns the texts of a reply.
func joined(r think.Reply) string {
	var texts []string
	for _, b := range r.Blocks {
		if text := strings.TrimSpace(b.Text); b.Call == nil && text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// within returns the first lines of a text that fit into some bytes. If not even the first one fits, it returns the text
// unchanged, which the worker refuses.
func within(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := strings.LastIndexByte(text[:limit+1], '\n')
	if end <= 0 {
		return text
	}
	return text[:end]
}
