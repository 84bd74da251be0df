package crewhttp

import "net/http"

// tokenCookie is the cookie with a token, and tokenParameter the parameter of a WebSocket's URL, because scripts cannot set its
// headers.
const (
	tokenCookie    = "flightdeck-token"
	tokenParameter = "token"
)

// withCredential returns the request with the token of its cookie, or of its URL if that is permitted, in the header
// Authorization, unless it has that header.
func withCredential(r *http.Request, fromURL bool) *http.Request {
	if r.Header.Get("Authorization") != "" {
		return r
	}
	token := ""
	if fromURL {
		token = r.URL.Query().Get(tokenParameter)
	}
	if cookie, err := r.Cookie(tokenCookie); err == nil && token == "" {
		token = cookie.Value
	}
	if token == "" {
		return r
	}
	with := r.Clone(r.Context())
	with.Header.Set("Authorization", "Bearer "+token)
	return with
}
