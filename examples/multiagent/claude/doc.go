// Package claude is a model for think.Worker that uses Anthropic's Messages API with tools. Copy it and adapt it to your
// agent.
//
// It translates the conversation as FlightDeck's model worker does: messages with the role tool become tool_result blocks,
// content that is an array is passed on unchanged, and consecutive messages of one role are joined. Unlike FlightDeck's
// worker, it marks results that are errors.
//
// Statuses 408, 409, 429 and 5xx and broken connections are retried, up to Settings.Attempts, after the wait that the API
// asks for and within the step's deadline. Any other failure ends the turn. Errors name status, type and request, but contain
// neither the conversation nor the key.
package claude
