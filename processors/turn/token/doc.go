// Package token mints and verifies callback tokens. A client with the token of a tool call may send its result to the
// callback door (door.Handler.ToolResponse), any number of times until the token expires.
//
//	token = base64url(payload) "." base64url(HMAC-SHA256(secret, payload))
//
// The payload is a JSON object. Its layout is not fixed, because the MAC is computed over its bytes. Tokens are written
// without base64 padding and read with or without it. They are compatible with FlightDeck's in both directions.
package token
