// Package auth defines how the HTTP and WebSocket doors of this module identify their callers, what each caller may do and use
// (Rights, Sessions, Limits), and the record of what it did (AuditEvent). The doors are in packages processors/turn/turnhttp,
// processors/gate/gatehttp, processors/delegation/delegationhttp, processors/crew/crewhttp, processors/peer/peerhttp, processors/fold/invoke
// and processors/delivery/websocket. Door configures what they have in common.
//
// Authentication fails closed. If Authenticate returns an error, the door rejects the request; it does not treat the sender
// as an anonymous caller. If Authenticate or Caller.MayUse panics, the request has no effect. If the function cannot
// decide, for example because a key server is unavailable, it must return an error.
//
// Three types have Authenticate functions: APIKeys (keys, whose hashes are in a file), Certificates (client certificates), and
// jwt.Tokens in the package below this one (tokens of an identity provider). First combines several. ServerTLS makes the TLS
// configuration of a server.
//
// # What a caller may do
//
// A caller has sessions (Caller.MayUse, for example of ParseSessions) and rights:
//
//	right    what it is for                  required by
//	Read     the events of a session         POST and GET of /invoke, WebSocket, GET /api/gates
//	Write    messages to a session           POST /api/chat and /api/peer/proxy, POST of /invoke that starts a turn
//	Answer   what a turn waits for           decisions on gates; tool callbacks have tokens of their own
//	Control  cancel a turn, purge a session  standing approvals of gates; package console
//
// # The end of a credential
//
// A credential ends when it expires (Caller.Expires) or is revoked (Caller.Revoked). The doors then reject its requests and
// end the streams and sockets that it has opened; Await tells them when. The turns continue.
package auth

import (
	"net/http"
	"time"
)

// Authenticate returns the caller of a request. If it returns an error, the door answers with status 401 and without the
// error's text, unless the documentation of the door says otherwise.
//
// Doors limit failures by address and, if the Caller that is returned with the error has a Name, by that account; the rest of the
// Caller is ignored then. An error that wraps ErrNoCredential is not counted.
//
// A door calls Authenticate from several goroutines, before it reads the body. Authenticate must not read the body. It may
// block; it should return when the request's context ends.
type Authenticate func(r *http.Request) (Caller, error)

// Caller is the authenticated sender of a request. The zero value may do everything, indefinitely.
type Caller struct {
	// UserID identifies the user, or is empty. Each door documents how it uses the ID.
	UserID string
	// Subject identifies the credential in logs and limits, for example an API key's ID. It is not a secret. Empty means
	// UserID. Use Name to read it.
	Subject string
	// MayUse reports whether the caller may use a session. If not, the door rejects the request or the subscription. Rights
	// limit what the caller may do in it. Doors call MayUse from several goroutines. Nil allows every session.
	MayUse func(sessionID string) bool
	// Rights are what the caller may do in the sessions that MayUse allows. The zero value means all rights.
	Rights Rights
	// Expires is when the credential expires. A door rejects requests from then on, and ends the streams and sockets that
	// the credential opened. The zero value means never.
	Expires time.Time
	// Revoked reports whether the credential has become invalid before it expired. Doors call it every 10 s for each open
	// stream and socket, from several goroutines. It must not block. Nil means never.
	Revoked func() bool
}

// Allowed reports whether the caller may use a session. It is MayUse, or true if MayUse is nil.
func (c Caller) Allowed(sessionID string) bool { return c.MayUse == nil || c.MayUse(sessionID) }

// Can reports whether the caller has all of the rights.
func (c Caller) Can(r Rights) bool { return c.Rights == 0 || c.Rights&r == r }

// Expired reports whether the credential has expired at a time.
func (c Caller) Expired(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

// Ended reports whether the credential has expired at a time, or was revoked.
func (c Caller) Ended(now time.Time) bool { return c.Expired(now) || c.Revoked != nil && c.Revoked() }

// Name is Subject, or UserID if Subject is empty.
func (c Caller) Name() string {
	if c.Subject != "" {
		return c.Subject
	}
	return c.UserID
}
