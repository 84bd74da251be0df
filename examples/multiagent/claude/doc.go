// Package claude is a model for think.Worker: Anthropic's Messages API, with tools. Copy it, and change what your agent
// needs.
//
// It reads the conversation as FlightDeck's model worker does: messages of role tool become tool_result blocks, content
// that is an array is passed on as it is, and what follows one another under one role is one message. Unlike
// FlightDeck's it tells the model which results are errors.
//
// What the API refuses for now (408, 409, 429, 5xx, a connection that breaks) is tried again a bounded number of times,
// after the wait that the API asks for, within the step's deadline. Every other failure ends the turn. The texts of
// errors name status, type and request, and quote neither the conversation nor the key.
package claude
