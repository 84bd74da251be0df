// Package openai is a model for think.Worker on OpenAI's Chat Completions API. With
// think.Settings.BaseURL it uses any server with a compatible API, such as vLLM, Ollama or a gateway.
//
//	think.Step --> Model --> POST /chat/completions, streamed --> think.Delta, ... --> think.Reply
//
// Think returns the whole reply; think.Stream also publishes it piece by piece. Requests are always streamed, with
// stream_options.include_usage.
//
// # Conversation
//
// The result of every tool call becomes a message with the role tool; the text of a failed one begins with "Error: ". A
// tool call without a result gets an error result. Images become image_url parts. Blocks that only Anthropic's API
// supports, such as documents, are replaced by a note that they are omitted. What a server of a reasoning model sends beside the
// calls of a reply (reasoning_content, reasoning, reasoning_details, extra_content) is sent back to it, and to no other host or
// model. It is not published.
//
// The package makes the one request itself. OpenAI's SDK for Go, which generates a type for every object of every API, adds 23 MB to a
// program and two minutes of processor time to its first build.
//
// # Prompt caching
//
// OpenAI caches prompts by itself. Requests to OpenAI have a prompt_cache_key per session, so that they reach the same
// cache. Requests to a BaseURL do not have it, because other servers can reject it.
//
// # Errors
//
// The errors are those of package think: think.Unavailable, think.ProviderError and the Err variables. An error in a stream has
// the status of its code or its type. A stream that ends in order ([DONE]) without a finish reason may be cut off: the model is
// called again. A refusal and the finish reason content_filter become think.ErrRefused. A text that was cut off at the token limit is a reply; a tool call
// that was cut off is the error think.ErrTruncated. The error insufficient_quota is not retried, although its status is
// 429.
//
// The idempotency key of the step is sent in the header Idempotency-Key. The environment variables of OpenAI's SDKs apply where the
// settings say nothing: OPENAI_BASE_URL, OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_CUSTOM_HEADERS.
package openai
