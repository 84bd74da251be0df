// Package think runs the model of an agent. It reads the steps of turns from enriched-message-input, calls a model for
// each, and writes the response to think-request-response. A step is one question to the model: the conversation with a new
// message, or with the results of tools.
//
//	{agent}-enriched-message-input --> Worker --> Model --> {agent}-think-request-response
//	                                     |
//	                                     +--> {agent}-think-dlq, if the model failed
//
// # Guarantees
//
// The worker writes a record for every step: a response, or a failure, which ends the turn with an error output. No step
// is dropped silently. Steps are processed at least once: after a crash of the worker, the model can be called again for
// the same step, and the turn takes the first response.
//
// A step is repeated, with the same turntable.id, when the turn crashes between the acknowledgement of the step's record
// and the write of its own row; the turn may have read and rejected the response before it opened the step again.
// So the worker answers every repeat:
//
//   - A settled step does not call the model again. Its record, a response or a failure, is published again with the
//     same bytes and headers.
//   - While the model is still working on the step, the repeat waits; the step's record is then published again for it.
//   - If the worker that settled the step ended before it acknowledged the step's record, that record is delivered again.
//     The next worker looks for the response or the failure on its topic, and for the turn's output, before it calls the
//     model. If one is there, nothing is written.
//   - If the turn may have written the step before a crash, the step has the header topics.HeaderAnswersFrom. A worker that
//     does not remember the step looks for its response from that offset on, and publishes it again.
//   - The model is called again for a call that was interrupted, for a step that failed and is in no worker's memory, and if
//     a memoir group crashes alone before it has committed a step that it passed on. The new response has the same
//     turntable.id but may differ in content; the turn takes one of the two and dead-letters the other.
//
// The context of a model call ends when its turn has its output: after a cancellation, a purge, a deadline or an answer
// (ErrTurnEnded). A step of such a turn is skipped, and nothing is written for it. For this, Run follows message-output: it
// knows the turns that have ended since it started. For a redelivered step it looks for the output of the turn.
//
// If the model answers while the brokers are unavailable, it is not called again either: the worker keeps the response until
// they are back, even if its partition is revoked and assigned again meanwhile.
//
// Steps are read by package worker, from a share group where the brokers offer them. A slow model does not delay other
// sessions within the limit of Config.Concurrency (and Config.ReadAhead in a consumer group), and never causes a rebalance. The
// broker delivers a step of a share group a limited number of times. If all of them were interrupted, the worker writes a
// failure to think-dlq.
//
// # Limits
//
// Config.Concurrency bounds the calls of this worker, Config.ModelLimit those of each model, at a time and per minute (requests
// and tokens), and Config.Limits those of other keys such as tenants. If a provider limits the rate (Unavailable), its model
// is not called again before the time that the provider asks for; other models are. A step that waits keeps its record and
// delays no step of another model. Sessions take turns. If its deadline passes, the step fails. Workers of one process
// share limits with Config.Limiter; processes do not share them.
//
// If a model ignores the end of its context, five seconds later it is logged by name, its step fails, and the call no
// longer counts toward the limits. At most ten times Config.Concurrency such calls are left running.
//
// # Retries
//
// If a model fails with an Unavailable, the worker calls it again (Config.Retry); the SDKs do not retry. By default a step has
// at most 5 calls, with growing waits that are at least as long as the provider asks for. The wait never exceeds the
// deadline of the step, which is that of the turn. Then the failure is written to think-dlq, with the error of the last
// call as its reason. All calls of a step have the same Step.Key, from which adapters derive the idempotency key of their
// requests.
//
// Fallback makes one model of several providers: the next one is asked while one is unavailable.
//
// A reply without a call and without a text that is not blank is no answer (ErrEmpty). The model is asked once more, at once
// and with Step.Again; if that reply is empty too, the turn ends with the code empty_response.
//
// The number of calls survives restarts as far as the broker stores it:
//
//	                     share group                          consumer group
//	failed calls         as long as the worker holds the      in the metadata of the committed offset, with the next
//	                     step; then as one delivery           commit
//	interrupted calls    in the broker's delivery count       in the metadata of the committed offset, with the next
//	                                                          commit after they began
//
// # Cost of failed calls
//
// The tokens and the cost of a response are those of all calls of its step, including calls that failed, as far as the model
// reports them. If the step fails, the cost is in the header turntable.cost of its record on think-dlq, and the turn adds it
// to the cost of the session. The adapters report the usage that the provider has sent before the error: Anthropic sends
// the input tokens at the beginning of a stream, Gemini sends totals with its pieces, and OpenAI sends usage at the end.
// A refused or truncated output has its usage with each of them. The cost of a call is not known if the connection broke or
// timed out before the provider sent usage, or if another process made the call. The cost of a call whose turn ended is
// logged and not added.
//
// # Streaming
//
// Stream converts a Streamer, which yields its reply in pieces, to a Model. The pieces are joined to the reply, and
// published to {agent}-agent-events as the events of one step of a turn. The turn writes the rest of its
// stream: see package fold. The response names the attempt at the step whose events count, so what a worker has streamed
// that died, or whose call failed, is dropped.
//
//	Streamer --> Stream --> Model --> Worker --> {agent}-think-request-response --> turn
//	                |                                                                |
//	                +--> {agent}-agent-events <--------------------------------------+
//
// For a model without Stream the turn writes the events of its reply, when the reply is complete.
//
// # Providers
//
// The packages anthropic, openai and gemini below this one are model adapters: models that use the SDKs of these providers.
// A program links only the adapters that it imports. They have the same Settings, errors and rules:
//
//   - Every tool call in a prompt has its result. If the history has none, the prompt has an error result instead, because
//     providers reject such a prompt.
//   - The names of tools and the IDs of calls that a provider does not accept, because another provider or a model made them
//     up, are mapped to ones that it accepts, in the calls, their results and the list of tools. The same name is always
//     mapped to the same one, and a call of the model to the tool that has the name. IDs are unique in a prompt. Halves of
//     characters (surrogates) and invalid UTF-8 are replaced by U+FFFD.
//   - What a provider requires back, such as its signed reasoning, is kept with the reply and returned to the same provider
//     and model only. See "Reasoning".
//   - What is good of a reply stays: see "Compatible servers".
//   - If the provider limits the rate of requests, is overloaded, fails or cannot be reached, the error is an Unavailable;
//     the worker then calls the model again. A call is one request: the SDKs do not retry. Other errors, such as the status
//     400 or 401, end the turn.
//   - Where the provider supports an idempotency key, every request of a step has the same one.
//   - The cost of a reply is computed from Settings.Prices. Cached tokens have a price of their own. A model without a
//     price has no cost.
//   - Errors name status, error type and request ID. They quote neither the conversation nor a secret.
//
// # Reasoning
//
// Providers refuse the second step of a turn with tools if they do not get their reasoning of the first one back: Anthropic its
// thinking blocks with their signatures, Gemini its thought signatures, and servers with OpenAI's API the members
// reasoning_content, reasoning, reasoning_details and extra_content that they sent. A Reply carries it as its State. The worker
// writes it to the metadata of the reply's message, {"agent":"...","state":{"provider":"...","model":"...","data":...}}, which
// the turn and workers in other languages keep as it is. It is in no content, event, output or log line, and no fold reads it.
// StateOf returns it to the adapter that made it: the same provider, at the same host, and the same model. A reply without
// calls has no state. If a turn of another implementation loses the metadata, the adapter knows the states of its last 256
// replies, as long as its process runs.
//
// # Compatible servers
//
// Most servers with the API of a provider differ from it somewhere. What the adapters read, with the test of each in
// quirks_test.go or calls_test.go of the adapter's package:
//
//	openai       the name of a call in every piece, in parts, or growing        TestPiecesOfCallsAreJoinedAsServersSendThem
//	openai       calls without index or ID, with one index or one ID for all,   TestPiecesOfCallsAreJoinedAsServersSendThem
//	             or with an ID of its own in each piece
//	openai       the older form function_call                                   TestPiecesOfCallsAreJoinedAsServersSendThem
//	openai       content as a list of parts; those of the reasoning are not     TestListsOfPartsAreSpokenWithoutTheReasoning
//	             for the user
//	openai       "error":null in chunks without an error                        TestErrorsThatAreNullAreNone
//	openai       error codes in a stream as numbers or text, in the chunk, in   TestErrorsInAStreamAreReadLikeStatuses
//	             the choice or without a member; how long to wait
//	anthropic    the same in error events                                       TestErrorsInAStreamAreReadLikeStatuses
//	gemini       errors with a word and no code                                 TestErrorsInAStreamHaveTheStatusOfTheirWord
//	openai       other finish reasons with a complete reply, none at all        TestReasonsOfCompatibleServers
//	anthropic    the whole input at the start of the block, or as an object     TestInputsAreReadAsServersSendThem
//	anthropic    blocks that are open at the same time, or do not end           TestBlocksThatAreOpenAtTheSameTime,
//	                                                                            TestInputsAreReadAsServersSendThem
//	all          arguments that are blank, null, an object or encoded twice     TestPiecesOfCallsAreJoinedAsServersSendThem,
//	                                                                            TestInputsAreReadAsServersSendThem,
//	                                                                            TestArgumentsAreAnObject (internal/toolcall)
//	all          arguments that are no object: the texts and the other calls    TestWhatIsGoodOfAReplyStays,
//	             stay, and the result of the call tells the model               TestCallsOfCustomModelsAreRead (this package)
//	all          characters that are divided between pieces                     TestHalfCharactersOfPiecesAreJoined,
//	                                                                            TestHalfCharactersAreJoinedOrReplaced
//	                                                                            (internal/toolcall)
//	all          an empty reply                                                 TestEmptyReplyIsAnError,
//	                                                                            TestEmptyReplyIsAskedForOnceMore (this package)
//	all          parallel calls with one ID, or the ID of an earlier call       TestParallelCallsWithOneIDAreTwoCalls,
//	                                                                            TestCallsOfAReplyHaveIDsOfTheirOwn (this package)
//	all          names and IDs of a history that the provider does not accept   TestHistoryOfOtherProvidersIsAccepted,
//	                                                                            TestCallWithAMappedNameIsThatOfTheTool
//	openai       IDs of Mistral (nine letters or digits) and of Kimi            TestHistoryOfOtherProvidersIsAccepted
//	openai       reasoning that must be sent back                               TestReasoningIsSentBackToTheServerThatSentIt
//	anthropic    thinking blocks, also redacted ones, where they were           TestThinkingIsSentBackWhereItWas
//	gemini       thought signatures                                             TestThoughtSignaturesAreSentBack
//
// # Output records
//
// History and input are copied byte for byte, so that the next step reads the same history. A reply without calls becomes
// one message for each text block, with the text as content. A reply with calls becomes one message with all blocks as
// content. The session's cost is its previous cost plus the cost of this step. A reply without a cost adds nothing.
package think
