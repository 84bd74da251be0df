// Package gemini is a model for think.Worker on the Gemini API and Google's official SDK.
//
//	think.Step --> Model --> POST models/{model}:streamGenerateContent --> think.Delta, ... --> think.Reply
//
// Think returns the whole reply; think.Stream also publishes it piece by piece. Requests are always streamed.
//
// # Conversation
//
// Tool calls and results become functionCall and functionResponse parts; a result is the member output, of a failed tool
// error. A tool call without a result gets an error result. Images become inlineData or, if they have an address, fileData;
// the API reads only some addresses. Blocks that only Anthropic's API knows, such as documents, become a note that they are
// omitted. Numbers in the input of a call are read as 64-bit floating-point numbers, as the SDK does.
//
// The API gives some calls no ID. Their ID is derived from the step, so a repeat of the step has the same IDs.
//
// The history of a turn has no thought signatures. Models since Gemini 3 reject calls without one, so the requests have the
// value that the API accepts for signatures that are not known. The model does not see its earlier reasoning then.
//
// # Prompt caching
//
// The API caches prompts by itself. Cached tokens have their own price. To use an explicit cache, set CachedContent in a
// configure function of New.
//
// # Errors
//
// See think.Unavailable, think.ProviderError and the errors beside them. A blocked prompt and the finish reasons of filters,
// such as SAFETY, are think.ErrRefused. A text that was cut off at the token limit is a reply; a tool call is
// think.ErrTruncated. How long to wait after status 429 is read from the error's RetryInfo.
//
// The API has no idempotency key: a step that is repeated after a crash is paid twice. The SDK's environment variable
// GOOGLE_GEMINI_BASE_URL applies where the settings have no BaseURL.
package gemini
