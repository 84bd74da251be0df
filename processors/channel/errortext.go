package channel

import (
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// errorText returns what a person reads instead of an error. It quotes nothing of the error: its message may have internals.
func errorText(e topics.OutputError) string {
	switch e.Code {
	case topics.CodeThinkTimeout:
		return textTimeout
	case topics.CodeThinkFailed:
		return thinkText(strings.ToLower(e.Message))
	case topics.CodeEmptyResponse:
		return "" // an agent that says nothing, as of the result of a task, posts nothing
	case topics.CodeQueueFull, topics.CodeBusy:
		return "I am still busy with earlier messages. Please send this one again later."
	case topics.CodeTooLarge:
		return textTooLong
	case topics.CodeInvalidMessage:
		return "I cannot read this message."
	case topics.CodeCancelled:
		return "Stopped."
	case topics.CodeTooManySteps:
		return "This needs too many steps. Please ask for a part of it."
	case topics.CodeOverBudget:
		return "This conversation has used up its budget."
	default:
		return textError
	}
}

const (
	textError    = "Something went wrong. Please try again."
	textTimeout  = "The answer took too long. Please try again."
	textTooLong  = "This conversation or its answer is too long. Please start a new one."
	textRate     = "There are too many requests at the moment. Please try again in a minute."
	textOverload = "The model is overloaded at the moment. Please try again later."
	textAccess   = "The model cannot be used because of its account. Please tell the operator."
	textModel    = "The model is not available. Please tell the operator."
)

// thinkText returns the text for an error of a model, by words that providers use.
func thinkText(message string) string {
	for _, c := range []struct {
		text  string
		words []string
	}{
		{textRate, []string{"rate limit", "rate_limit", "too many requests", "429"}},
		{textTooLong, []string{"context length", "context_length", "context window", "too long", "too many tokens", "maximum context"}},
		{textAccess, []string{"api key", "api_key", "authentication", "unauthorized", "billing", "credit", "quota", "permission", "401", "403"}},
		{textOverload, []string{"overloaded", "unavailable", "503", "529"}},
		{textTimeout, []string{"timeout", "timed out", "deadline"}},
		{textModel, []string{"model not found", "model_not_found", "no such model", "unknown model", "404"}},
	} {
		for _, word := range c.words {
			if strings.Contains(message, word) {
				return c.text
			}
		}
	}
	return textError
}
