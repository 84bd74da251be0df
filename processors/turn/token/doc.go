// Package token mints and verifies callback tokens. A client with the token of a tool call may send its result to the
// callback door (turnhttp.Handler.ToolResponse), any number of times until the token expires.
//
//	token = base64url(payload) "." base64url(HMAC-SHA256(secret, payload))
//
// Mint writes the time at which the token expires, the call's turntable.id, so that the token answers no later call with the
// same tool_use_id, and the ID of the secret, so that secrets can be rotated. FlightDeck ignores the last two.
//
// The payload is a JSON object. Its layout is not fixed, because the MAC is computed over its bytes. Tokens are written
// without base64 padding and read with or without it. They are compatible with FlightDeck's in both directions.
package token
