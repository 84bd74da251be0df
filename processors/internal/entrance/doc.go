// Package entrance is what the HTTP and WebSocket doors have in common: every request passes it before the door reads or
// parses anything of it.
//
//	Open          the headers are within their limits (431, 414); the page is of a trusted origin, and the header Host names
//	              the door (403); a slot of the door is free (503)
//	Authenticate  the address has not failed too often (429); the caller is authenticated (401) and within its limits (429)
//	ReadBody      the content type is JSON (415); the body arrives fast enough (408) and fits into memory (413, 429, 503), and
//	              that of a caller without a name gives way if there is no room for others (503)
//	Session       the ID is usable (400), the caller may use the session (403), the session is within its limits (429)
//	Close         frees what the request occupied
//
// Serve does that for a door with routes, and answers with their functions.
//
// The rules are in limiter.go, budget.go and failures.go; they have no clock and no I/O.
package entrance
