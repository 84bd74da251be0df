// Package jwt authenticates callers by JSON Web Tokens that an identity provider has signed. Tokens.Authenticate is an
// auth.Authenticate for all doors.
//
//	identity provider --> token --> Authorization: Bearer ... --> Tokens --> auth.Caller
//	                  --> JWKS (a file or a URL) ------------------^
//
// # What is checked
//
// The signature, with a public key of the JWKS and one of the allowed algorithms (Config.Algorithms); the issuer and the
// audience, which New requires; exp, which a token must have; nbf and iat if the token has them. The algorithm none and
// those with a shared secret (HS256 and so on) cannot be allowed. A key is used only for the algorithm that it names, and
// only if its type fits: an RSA key has at least 2048 bits. Keys for encryption are skipped, and so are symmetric ones. A
// token with the header crit is rejected.
//
// # The caller
//
//	claim                             the caller's
//	sub (UserClaim)                   UserID; a token without it is rejected
//	exp, plus Leeway                  Expires
//	none (SessionsClaim)              sessions: patterns of auth.ParseSessions; default Sessions, {user}:*
//	none (RightsClaim)                rights: names of auth.ParseRights; default Rights, read, write and answer
//
// # The keys
//
// A file is read again when it has changed, at most once a second. A URL is read on the first request, again after an hour,
// and when a token names an unknown key, at most once in 30 seconds, so that forged tokens cause few requests. It must be
// HTTPS, except on this host, and redirects are not followed. While it cannot be read, the former keys stay in use, for 24
// hours at most. New does not read a URL, so that a program starts while the identity provider is unavailable.
package jwt
