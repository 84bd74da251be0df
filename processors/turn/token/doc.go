// Package token makes and checks callback tokens: whoever holds the token of a tool call may answer that call, once or
// more, until it expires, through the tool callback door of package turn.
//
//	token = base64url(payload) "." base64url(HMAC-SHA256(secret, payload))
//
// The payload is a JSON object; its layout is free, since the MAC is over its bytes. Tokens are written without padding
// and read with or without. They are FlightDeck's: either side reads the other's.
package token
