// Package gemini is a model for think.Worker on the Gemini API and Google's official SDK.
//
//	think.Step --> Model --> POST models/{model}:streamGenerateContent --> think.Delta, ... --> think.Reply
//
// Think returns the whole reply; think.Stream also publishes it piece by piece. Requests are always streamed.
//
// # Conversation
//
// Tool calls and results become functionCall and functionResponse parts; a result is in the member output, the error of a
// failed tool in the member error. A tool call without a result gets an error result. Images become inlineData or, if the
// block has a URL, fileData; the API can read only some URLs. Blocks that only Anthropic's API supports, such as documents,
// are replaced by a note that they are omitted. The SDK reads numbers in the input of a call as 64-bit floating-point
// numbers.
//
// The API gives some tool calls no ID. Model derives their IDs from the step, so a repeat of the step has the same IDs.
//
// The API signs the model's reasoning with thought signatures. Those of calls are sent back to the same model. Models since
// Gemini 3 reject tool calls without a signature, so for the calls of another model requests contain the value that the API
// accepts in place of an unknown one.
//
// # Prompt caching
//
// The API caches prompts by itself. Cached tokens have their own price. To use an explicit cache, set CachedContent in a
// configure function of New.
//
// # Errors
//
// The errors are those of package think: think.Unavailable, think.ProviderError and the Err variables. A blocked prompt and
// the finish reasons of filters, such as SAFETY, become think.ErrRefused. A text that was cut off at the token limit is a
// reply; a tool call that was cut off is the error think.ErrTruncated. After status 429 the wait is read from the error's
// RetryInfo.
//
// The API has no idempotency key: if a step is repeated after a crash, the provider charges for both calls. The SDK's
// environment variable GOOGLE_GEMINI_BASE_URL applies where the settings have no BaseURL.
//
// The SDK also prints errors of reading a stream to Go's standard logger, and has no setting for that. They are returned as
// think.Unavailable too. A program that does not want the lines redirects that logger (log.SetOutput).
package gemini
