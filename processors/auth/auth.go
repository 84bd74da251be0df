// Package auth defines how the HTTP and WebSocket doors of this module identify their callers: packages
// processors/turn/door, processors/fold/invoke and processors/delivery/websocket. Each has an option WithAuthenticate that
// takes an Authenticate function. A door without one accepts every request and logs a warning.
//
// Authentication fails closed. If Authenticate returns an error, the door rejects the request; it does not treat the
// sender as an anonymous caller. If Authenticate or Caller.MayUse panics, the request has no effect. A function that cannot
// decide, for example because a key server is unavailable, returns an error.
package auth

import "net/http"

// Authenticate returns the caller of a request. If it returns an error, the door answers with status 401, and the error's
// text is not part of the answer, unless the documentation of the door says otherwise.
//
// A door calls Authenticate from several goroutines, before it reads the body. Authenticate must not read the body. It may
// block; it should return when the request's context ends.
type Authenticate func(r *http.Request) (Caller, error)

// Caller is the authenticated sender of a request.
type Caller struct {
	// UserID identifies the user, or is empty. Each door documents how it uses the ID.
	UserID string
	// MayUse reports whether the caller may use a session: read its events and write to it. If not, the door rejects the
	// request or the subscription. Doors call MayUse from several goroutines. Nil allows every session.
	MayUse func(sessionID string) bool
}

// Allowed reports whether the caller may use a session. It is MayUse, or true if MayUse is nil.
func (c Caller) Allowed(sessionID string) bool { return c.MayUse == nil || c.MayUse(sessionID) }
