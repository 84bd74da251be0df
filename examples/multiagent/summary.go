package main

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// Two compactors, which summarize the oldest exchanges of a session that exceeds the history limit.

// questionsAsked begins the summaries of the scripted compactor.
const questionsAsked = "The user asked: "

// listQuestions is the scripted compactor: it keeps the questions.
func listQuestions(_ context.Context, c compact.Conversation) (compact.Summary, error) {
	var asked []string
	for _, m := range c.Messages {
		text := topics.Text(m.Content)
		if _, earlier, ok := strings.Cut(text, questionsAsked); ok && orNone(m.Role) == "assistant" {
			asked = append(asked, earlier) // an older summary
		} else if orNone(m.Role) == "user" {
			asked = append(asked, text)
		}
	}
	return compact.Summary{Text: questionsAsked + strings.Join(asked, " ")}, nil
}

// summarize is the system prompt of a model that summarizes.
const summarize = "You are given the transcript of a conversation between a user and an assistant. Summarize it for the " +
	"assistant, who continues without the transcript: keep facts, names, numbers, decisions and open questions. Answer " +
	"with the summary alone."

// askForSummary returns a compactor that asks a model. The model gets the conversation as one text, because it has none of the
// tools that the conversation refers to.
func askForSummary(m think.Model) compact.Func {
	return func(ctx context.Context, c compact.Conversation) (compact.Summary, error) {
		role := "user"
		content, _ := jsontext.AppendQuote(nil, transcript(c.Messages)) // invalid UTF-8 is replaced
		reply, err := m.Think(ctx, think.Step{
			Agent: c.Agent, SessionID: c.SessionID, UserID: c.UserID, Key: c.Key, Deadline: c.Deadline,
			Messages: []topics.Message{{Role: &role, Content: content}},
		})
		if err != nil {
			return compact.Summary{}, err
		}
		s := compact.Summary{InputTokens: reply.InputTokens, OutputTokens: reply.OutputTokens, Cost: reply.Cost}
		for _, b := range reply.Blocks {
			s.Text += b.Text
		}
		return s, nil
	}
}

// transcript returns messages as text. Content that is not a text, such as the calls of tools and their results, stays JSON.
func transcript(messages []topics.Message) string {
	var b strings.Builder
	for _, m := range messages {
		text := string(m.Content)
		if jsontext.Value(m.Content).Kind() == '"' {
			text = topics.Text(m.Content)
		}
		b.WriteString(orNone(m.Role) + ": " + text + "\n\n")
	}
	return b.String()
}
