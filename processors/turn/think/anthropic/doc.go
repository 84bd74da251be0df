// Package anthropic is a model for think.Worker on Anthropic's Messages API and its official SDK.
//
//	think.Step --> Model --> POST /v1/messages, streamed --> think.Delta, ... --> think.Reply
//
// Think returns the whole reply; think.Stream also publishes it piece by piece. Requests are always streamed.
//
// # Conversation
//
// Messages with the role tool become tool_result blocks. Content that is an array of Anthropic's content blocks, such as
// images and documents, is passed on unchanged. Consecutive messages of one role are joined. A tool call without a result
// gets an error result. Thinking blocks of the response are published by think.Stream. Those of a response with calls are sent
// back where they were, with their signatures, to the same model. They are not in the content of the history.
//
// # Prompt caching
//
// Tools, system prompt and conversation are cached for 5 minutes: the request marks the end of the system prompt (of the
// tools, if there is none) and asks for automatic caching of the conversation. The prompt must therefore not contain what
// changes with every step. Step.Memoir follows the system prompt.
//
// # Errors
//
// The errors are those of package think: think.Unavailable, think.ProviderError and the Err variables. The stop reason
// "refusal" becomes think.ErrRefused. A text that was cut off at the token limit is a reply; a tool call that was cut off
// is the error think.ErrTruncated.
//
// The idempotency key of the step is sent in the header Idempotency-Key. The SDK's environment variables apply where the
// settings say nothing: ANTHROPIC_BASE_URL, ANTHROPIC_CUSTOM_HEADERS.
package anthropic
